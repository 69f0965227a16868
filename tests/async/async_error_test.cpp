// Error codes of std and of Boost, there and back.
#include "verbs/async_error.hpp"

#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <set>
#include <string>

#include "mpa/error.hpp"

namespace iwarp::verbs {
namespace {

TEST(AsyncError, EveryStatusHasItsWords) {
  std::set<std::string> seen;
  for (int value = 0; value <= static_cast<int>(status::bad_response); ++value) {
    const auto code = to_error_code(static_cast<status>(value));
    EXPECT_EQ(static_cast<bool>(code), value != 0);
    EXPECT_EQ(code.category().name(), std::string("iwarp.completion"));
    EXPECT_TRUE(seen.insert(code.message()).second) << code.message();
  }
  EXPECT_EQ(status_category().message(1000), "unknown status 1000");
}

TEST(AsyncError, OwnCategoriesGoThereAndBack) {
  for (int value = 1; value <= static_cast<int>(errc::recording_failed); ++value) {
    const std::error_code before = make_error_code(static_cast<errc>(value));
    const boost::system::error_code there = to_asio(before);
    EXPECT_EQ(there.value(), before.value());
    EXPECT_EQ(there.message(), before.message());
    EXPECT_EQ(there.category().name(), std::string("iwarp.verbs"));
    EXPECT_EQ(to_std(there), before);
    EXPECT_TRUE(there == static_cast<errc>(value));
    EXPECT_EQ(there, to_asio(before)) << "two bridges for one category";
  }
  const auto status_code = to_asio(to_error_code(status::remote_access));
  EXPECT_TRUE(status_code == status::remote_access);
  EXPECT_FALSE(status_code == status::flushed);
  EXPECT_FALSE(status_code == static_cast<errc>(static_cast<int>(status::remote_access)))
      << "same value, other category";
  EXPECT_TRUE(to_std(to_asio(make_error_code(mpa::errc::rejected))) == mpa::errc::rejected);
}

TEST(AsyncError, TheSystemsCodesAreAsios) {
  EXPECT_EQ(to_asio(std::error_code(ECONNREFUSED, std::system_category())), boost::asio::error::connection_refused);
  EXPECT_EQ(to_asio(std::error_code(ECONNREFUSED, std::generic_category())).category(),
            boost::system::generic_category());
  // As the layers below make them of Asio's.
  const boost::system::error_code refused = boost::asio::error::connection_refused;
  EXPECT_EQ(to_asio(std::error_code(refused)), refused);
  EXPECT_EQ(to_std(refused), std::error_code(ECONNREFUSED, std::system_category()));
  EXPECT_EQ(to_std(boost::asio::error::eof).message(), boost::system::error_code(boost::asio::error::eof).message());
}

TEST(AsyncError, SuccessIsSuccess) {
  EXPECT_FALSE(to_asio({}));
  EXPECT_FALSE(to_std({}));
  EXPECT_FALSE(to_asio(to_error_code(status::success)));
  EXPECT_TRUE(boost::system::error_code() == status::success || !to_std({}));
}

}  // namespace
}  // namespace iwarp::verbs
