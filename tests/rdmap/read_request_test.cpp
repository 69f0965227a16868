// The 28 octets of a Read Request.
#include "rdmap/read_request.hpp"

#include "ddp/header.hpp"
#include "rdmap/opcode.hpp"
#include "tests/ddp/segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace iwarp::rdmap {
namespace {

using ddp::test::concat;
using ddp::test::field;
using ddp::test::from_hex;
using ddp::test::join;
using ddp::test::octets;

struct read_request_case {
  const char* name;
  std::vector<field> fields;
  read_request want;
};

octets emitted(const read_request& request) {
  std::array<std::byte, read_request_size> out;
  out.fill(std::byte{0xA5});
  request.emit(out);
  return {out.begin(), out.end()};
}

read_request parsed(const octets& wire) { return read_request::parse(const_bytes(wire).first<read_request_size>()); }

// RDMAP-15
class ReadRequest : public testing::TestWithParam<read_request_case> {};

TEST_P(ReadRequest, ParsesAndEmits) {
  const octets wire = join(GetParam().fields);
  ASSERT_EQ(wire.size(), read_request_size);
  EXPECT_EQ(parsed(wire), GetParam().want);
  EXPECT_EQ(emitted(GetParam().want), wire);
}

TEST_P(ReadRequest, EveryBitIsPartOfTheValue) {
  const octets wire = join(GetParam().fields);
  for (std::size_t bit = 0; bit < read_request_size * 8; ++bit) {
    octets flipped = wire;
    flipped[bit / 8] ^= static_cast<std::byte>(0x80 >> (bit % 8));
    const read_request got = parsed(flipped);
    EXPECT_NE(got, GetParam().want) << bit;
    EXPECT_EQ(emitted(got), flipped) << bit;
  }
}

INSTANTIATE_TEST_SUITE_P(Rfc5040, ReadRequest,
                         testing::Values(read_request_case{"RtrOfNothing",
                                                           {{"SinkSTag", "00000000"},
                                                            {"SinkTO", "0000000000000000"},
                                                            {"RDMARDSZ", "00000000"},
                                                            {"SrcSTag", "00000000"},
                                                            {"SrcTO", "0000000000000000"}},
                                                           {}},
                                         read_request_case{"FourKibibytes",
                                                           {{"SinkSTag", "aabbcc01"},
                                                            {"SinkTO", "0000000000001000"},
                                                            {"RDMARDSZ", "00001000"},
                                                            {"SrcSTag", "11223344"},
                                                            {"SrcTO", "0000000000002000"}},
                                                           {.sink = {0xaabbcc01},
                                                            .sink_offset = 0x1000,
                                                            .size = 4096,
                                                            .source = {0x11223344},
                                                            .source_offset = 0x2000}},
                                         read_request_case{"EveryOctetDifferent",
                                                           {{"SinkSTag", "01020304"},
                                                            {"SinkTO", "05060708090a0b0c"},
                                                            {"RDMARDSZ", "0d0e0f10"},
                                                            {"SrcSTag", "11121314"},
                                                            {"SrcTO", "15161718191a1b1c"}},
                                                           {.sink = {0x01020304},
                                                            .sink_offset = 0x05060708090a0b0c,
                                                            .size = 0x0d0e0f10,
                                                            .source = {0x11121314},
                                                            .source_offset = 0x15161718191a1b1c}},
                                         read_request_case{"Highest",
                                                           {{"SinkSTag", "ffffffff"},
                                                            {"SinkTO", "ffffffffffffffff"},
                                                            {"RDMARDSZ", "ffffffff"},
                                                            {"SrcSTag", "ffffffff"},
                                                            {"SrcTO", "ffffffffffffffff"}},
                                                           {.sink = {0xffffffff},
                                                            .sink_offset = 0xffffffffffffffff,
                                                            .size = 0xffffffff,
                                                            .source = {0xffffffff},
                                                            .source_offset = 0xffffffffffffffff}}),
                         [](const auto& which) { return std::string(which.param.name); });

// RDMAP-15: the whole ULPDU of 46 octets, header and request.
TEST(ReadRequestMessage, VectorOfTheWholeUlpdu) {
  const octets wire = from_hex(
      "4141 00000000 00000001 00000001 00000000 aabbcc01 00000000 00001000"
      "00001000 11223344 00000000 00002000");
  ASSERT_EQ(wire.size(), 46u);
  const ddp::untagged_header header{.last = true,
                                    .ulp_control = control_octet(opcode::read_request),
                                    .queue = read_request_queue,
                                    .sequence = {1},
                                    .offset = 0};
  const read_request request{
      .sink = {0xaabbcc01}, .sink_offset = 0x1000, .size = 4096, .source = {0x11223344}, .source_offset = 0x2000};
  EXPECT_EQ(concat({ddp::test::emitted(header), emitted(request)}), wire);
  EXPECT_EQ(ddp::untagged_header::parse(wire).value_or(ddp::untagged_header{}), header);
  EXPECT_EQ(read_request::parse(const_bytes(wire).subspan<18, 28>()), request);
}

// RDMAP-18: SinkSTag and SinkTO go into the response octet by octet as they came.
TEST(ReadRequestMessage, SinkIsCopiedIntoTheResponse) {
  const octets wire = from_hex("aabbcc01 0102030405060708 00000004 11223344 0000000000002000");
  const read_request request = parsed(wire);
  const octets response = ddp::test::emitted(ddp::tagged_header{.last = true,
                                                                .ulp_control = control_octet(opcode::read_response),
                                                                .stag = request.sink,
                                                                .offset = request.sink_offset});
  EXPECT_EQ(response, concat({from_hex("c142"), const_bytes(wire).first(12)}));
}

}  // namespace
}  // namespace iwarp::rdmap
