#include "mpa/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace iwarp::mpa {
namespace {

TEST(MpaError, EveryValueHasItsOwnMessage) {
  std::set<std::string> messages;
  int value = 1;
  for (; value <= static_cast<int>(errc::no_matching_rtr); ++value) {
    const std::error_code error = make_error_code(static_cast<errc>(value));
    EXPECT_EQ(error.message().find("unknown"), std::string::npos) << value;
    EXPECT_TRUE(messages.insert(error.message()).second) << value << ": " << error.message();
  }
  EXPECT_EQ(value, 19);
  EXPECT_EQ(error_category().message(value), "unknown MPA error 19");
}

TEST(MpaError, ComparesAsAnErrorCodeOfItsCategory) {
  const std::error_code error = errc::crc_mismatch;
  EXPECT_STREQ(error.category().name(), "iwarp.mpa");
  EXPECT_EQ(error, errc::crc_mismatch);
  EXPECT_NE(error, errc::marker_mismatch);
  EXPECT_TRUE(static_cast<bool>(error)) << "no error may have the value of success";
}

}  // namespace
}  // namespace iwarp::mpa
