// RFC 7306 messages behind the untagged header.
#include "rdmap/atomic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/ddp/segments.hpp"

namespace iwarp::rdmap {
namespace {

using ddp::test::field;
using ddp::test::from_hex;
using ddp::test::join;
using ddp::test::octets;

template <class Message, std::size_t Size>
void expect_both_ways(const octets& wire, const Message& want) {
  ASSERT_EQ(wire.size(), Size);
  const auto in = const_bytes(wire).first<Size>();
  EXPECT_EQ(Message::parse(in), want);
  std::array<std::byte, Size> out;
  out.fill(std::byte{0xA5});
  want.emit(out);
  EXPECT_EQ(octets(out.begin(), out.end()), wire);
}

// EXT-08, EXT-28
TEST(AtomicRequest, FetchAddAndCompareSwap) {
  expect_both_ways<atomic_request, atomic_request_size>(
      join({{"reserved, AOpCode FetchAdd", "00000000"},
            {"Request Identifier", "00000007"},
            {"Remote STag", "11223344"},
            {"Remote TO", "0000000000002000"},
            {"Add Data", "0000000000000001"},
            {"Add Mask", "0000000000000000"},
            {"Compare Data", "0000000000000000"},
            {"Compare Mask", "ffffffffffffffff"}}),
      {.op = atomic_opcode::fetch_add, .identifier = 7, .remote = {0x11223344}, .remote_offset = 0x2000, .data = 1});
  expect_both_ways<atomic_request, atomic_request_size>(join({{"reserved, AOpCode CmpSwap", "00000002"},
                                                              {"Request Identifier", "00000008"},
                                                              {"Remote STag", "11223344"},
                                                              {"Remote TO", "0123456789abcdef"},
                                                              {"Swap Data", "0000000000000055"},
                                                              {"Swap Mask", "fffffffffffffffe"},
                                                              {"Compare Data", "000000000000002a"},
                                                              {"Compare Mask", "ffffffffffffff00"}}),
                                                        {.op = atomic_opcode::compare_swap,
                                                         .identifier = 8,
                                                         .remote = {0x11223344},
                                                         .remote_offset = 0x0123456789abcdef,
                                                         .data = 0x55,
                                                         .mask = ~std::uint64_t{1},
                                                         .compare = 0x2a,
                                                         .compare_mask = ~std::uint64_t{0xFF}});
}

TEST(AtomicRequest, ReservedBitsAreIgnored) {
  octets wire(atomic_request_size);
  const auto plain = atomic_request::parse(const_bytes(wire).first<atomic_request_size>());
  for (std::size_t i = 0; i != 3; ++i) wire[i] = std::byte{0xFF};
  wire[3] = std::byte{0xF0};
  EXPECT_EQ(atomic_request::parse(const_bytes(wire).first<atomic_request_size>()), plain);
}

TEST(AtomicRequest, EveryOtherBitCounts) {
  const octets wire(atomic_request_size);
  const auto plain = atomic_request::parse(const_bytes(wire).first<atomic_request_size>());
  for (std::size_t bit = 28; bit != atomic_request_size * 8; ++bit) {
    octets flipped = wire;
    flipped[bit / 8] ^= static_cast<std::byte>(0x80 >> (bit % 8));
    EXPECT_NE(atomic_request::parse(const_bytes(flipped).first<atomic_request_size>()), plain) << bit;
  }
}

// EXT-14
TEST(AtomicResponse, TwelveOctets) {
  expect_both_ways<atomic_response, atomic_response_size>(
      join({{"Original Request Identifier", "00000007"}, {"Original Remote Data Value", "00000000000000ff"}}),
      {.identifier = 7, .value = 0xFF});
}

}  // namespace
}  // namespace iwarp::rdmap
