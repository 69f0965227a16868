// The error category of DDP.
#include "ddp/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace iwarp::ddp {
namespace {

constexpr int last_error = static_cast<int>(errc::untagged_bad_version);

TEST(DdpError, EveryErrorHasWordsOfItsOwn) {
  std::set<std::string> seen;
  for (int value = 1; value <= last_error; ++value) {
    const std::string message = make_error_code(static_cast<errc>(value)).message();
    EXPECT_GT(message.size(), 10u) << value;
    EXPECT_EQ(message.find("unknown DDP error"), std::string::npos) << value;
    EXPECT_TRUE(seen.insert(message).second) << value << ": " << message;
  }
}

TEST(DdpError, ValuesThatAreNoErrorAreSaidToBeUnknown) {
  for (const int value : {-1, 0, last_error + 1, 255}) {
    EXPECT_EQ(error_category().message(value), "unknown DDP error " + std::to_string(value));
  }
}

TEST(DdpError, IsAnErrorCodeEnumOfItsCategory) {
  const std::error_code ec = errc::tagged_invalid_stag;
  EXPECT_TRUE(ec);
  EXPECT_STREQ(ec.category().name(), "iwarp.ddp");
  EXPECT_EQ(&ec.category(), &error_category());
  EXPECT_EQ(ec, errc::tagged_invalid_stag);
  EXPECT_NE(ec, errc::tagged_base_or_bounds);
}

}  // namespace
}  // namespace iwarp::ddp
