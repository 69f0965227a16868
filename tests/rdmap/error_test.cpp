// The error category of RDMAP.
#include "rdmap/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace iwarp::rdmap {
namespace {

constexpr int last_error = static_cast<int>(errc::terminated_by_peer);

TEST(RdmapError, EveryErrorHasWordsOfItsOwn) {
  std::set<std::string> seen;
  for (int value = 1; value <= last_error; ++value) {
    const std::string message = make_error_code(static_cast<errc>(value)).message();
    EXPECT_GT(message.size(), 10u) << value;
    EXPECT_EQ(message.find("unknown RDMAP error"), std::string::npos) << value;
    EXPECT_TRUE(seen.insert(message).second) << value << ": " << message;
  }
}

TEST(RdmapError, ValuesThatAreNoErrorAreSaidToBeUnknown) {
  for (const int value : {-1, 0, last_error + 1, 255}) {
    EXPECT_EQ(error_category().message(value), "unknown RDMAP error " + std::to_string(value));
  }
}

TEST(RdmapError, IsAnErrorCodeEnumOfItsCategory) {
  const std::error_code ec = errc::unexpected_opcode;
  EXPECT_TRUE(ec);
  EXPECT_STREQ(ec.category().name(), "iwarp.rdmap");
  EXPECT_EQ(&ec.category(), &error_category());
  EXPECT_EQ(ec, errc::unexpected_opcode);
  EXPECT_NE(ec, errc::bad_version);
}

}  // namespace
}  // namespace iwarp::rdmap
