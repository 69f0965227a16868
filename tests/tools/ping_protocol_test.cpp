#include "tools/ping/protocol.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace iwarp::tools::ping {
namespace {

std::string filled(std::size_t size, std::uint64_t number) {
  std::string data(size, 'x');
  fill(as_mutable_bytes(data.data(), data.size()), number);
  return data;
}

TEST(PingAdvert, IsRpingsStructInBigEndian) {
  std::array<std::byte, message_size> wire;
  advert{.buffer = {.key = {0x01020304}, .offset = 0x1112131415161718}, .size = 0x21222324}.emit(wire);
  const std::array<unsigned char, message_size> want = {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                                                        0x01, 0x02, 0x03, 0x04, 0x21, 0x22, 0x23, 0x24};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(wire[i]), want[i]) << i;
  const advert back = advert::parse(wire);
  EXPECT_EQ(back.buffer.key.value, 0x01020304u);
  EXPECT_EQ(back.buffer.offset, 0x1112131415161718u);
  EXPECT_EQ(back.size, 0x21222324u);
}

TEST(PingData, IsFilledAsRpingDoes) {
  // snprintf() into the buffer, then characters from 'A' + number on, 'z' being followed by 'A', then a NUL at the end.
  EXPECT_EQ(filled(20, 0), std::string("rdma-ping-0: ABCDEF") + '\0');
  EXPECT_EQ(filled(20, 12), std::string("rdma-ping-12: MNOPQ") + '\0');
  EXPECT_EQ(filled(80, 1).substr(12, 66), " BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzABCDEFGH");
  EXPECT_EQ(filled(20, 57), std::string("rdma-ping-57: zABCD") + '\0');
  EXPECT_EQ(filled(20, 58), std::string("rdma-ping-58: ABCDE") + '\0');
}

TEST(PingData, FitsAnySize) {
  EXPECT_EQ(filled(1, 7), std::string(1, '\0'));
  EXPECT_EQ(filled(5, 7), std::string("rdma") + '\0');
  EXPECT_EQ(filled(14, 7), std::string("rdma-ping-7: ") + '\0');
}

TEST(PingData, IsShownUpToTheNulAndNeverRaw) {
  const std::string hostile = std::string("a\x1b[31m\nb") + '\0' + "hidden";
  EXPECT_EQ(text_of(as_const_bytes(hostile.data(), hostile.size())), "a?[31m?b");
  EXPECT_EQ(text_of({}), "");
}

}  // namespace
}  // namespace iwarp::tools::ping
