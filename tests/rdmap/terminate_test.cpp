// The Terminate message: its layout, its tolerance for what peers send, its words.
#include "rdmap/terminate.hpp"

#include "rdmap/opcode.hpp"
#include "tests/ddp/segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace iwarp::rdmap {
namespace {

using ddp::test::concat;
using ddp::test::field;
using ddp::test::from_hex;
using ddp::test::join;
using ddp::test::octets;

octets emitted(const terminate_message& message) {
  std::array<std::byte, max_terminate_size> out;
  out.fill(std::byte{0xA5});
  const std::size_t used = message.emit(out);
  EXPECT_LE(used, out.size());
  for (std::size_t i = used; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0xA5}) << "octet " << i;
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(used)};
}

terminate_message with_header(term_code code, std::uint16_t segment_length, const octets& header) {
  terminate_message message;
  message.code = code;
  message.segment_length_valid = true;
  message.segment_length = segment_length;
  std::copy(header.begin(), header.end(), message.ddp_header.begin());
  message.ddp_header_size = header.size();
  return message;
}

terminate_message with_request(term_code code, const octets& header, const read_request& request) {
  terminate_message message = with_header(code, 46, header);
  message.request = request;
  return message;
}

struct terminate_case {
  const char* name;
  std::vector<field> fields;  // behind the untagged header
  terminate_message want;
};

// RDMAP-40 RDMAP-45 RDMAP-46 RDMAP-48
class Terminate : public testing::TestWithParam<terminate_case> {};

TEST_P(Terminate, ParsesAndEmits) {
  const octets wire = join(GetParam().fields);
  const auto got = terminate_message::parse(wire);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, GetParam().want);
  EXPECT_EQ(emitted(GetParam().want), wire);
}

// RDMAP-49: of a message cut short what is whole is read, the rest left out; only the control word must be there.
TEST_P(Terminate, EveryPrefix) {
  const octets wire = join(GetParam().fields);
  const terminate_message& want = GetParam().want;
  const std::size_t header_end = term_control_size + 2 + want.ddp_header_size;
  for (std::size_t n = 0; n < wire.size(); ++n) {
    const auto got = terminate_message::parse({wire.data(), n});
    if (n < term_control_size) {
      ASSERT_FALSE(got) << n;
      EXPECT_EQ(got.error(), errc::unspecified) << n;
      continue;
    }
    ASSERT_TRUE(got) << n;
    EXPECT_EQ(got->code, want.code) << n;
    const bool length = n >= term_control_size + 2;
    EXPECT_EQ(got->segment_length_valid, length) << n;
    EXPECT_EQ(got->segment_length, length ? want.segment_length : 0) << n;
    EXPECT_EQ(got->ddp_header_size, n >= header_end ? want.ddp_header_size : 0) << n;
    EXPECT_EQ(got->ddp_header, (n >= header_end ? want.ddp_header : terminate_message{}.ddp_header)) << n;
    EXPECT_FALSE(got->request) << n;
  }
}

// RDMAP-49: the five reserved bits behind M, D, R and the reserved octet.
TEST_P(Terminate, IgnoresReservedBits) {
  const octets wire = join(GetParam().fields);
  for (unsigned reserved = 0; reserved < 0x2000; ++reserved) {
    octets changed = wire;
    changed[2] |= static_cast<std::byte>(reserved >> 8);
    changed[3] |= static_cast<std::byte>(reserved & 0xFF);
    auto got = terminate_message::parse(changed);
    ASSERT_TRUE(got);
    got->swapped_reading.reset();
    ASSERT_EQ(*got, GetParam().want) << reserved;
  }
}

TEST_P(Terminate, IgnoresWhatFollowsIt) {
  octets wire = join(GetParam().fields);
  wire.insert(wire.end(), 40, std::byte{0xFF});
  const auto got = terminate_message::parse(wire);
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, GetParam().want);
}

const read_request bad_source{
    .sink = {0xaabbcc01}, .sink_offset = 0x1000, .size = 4096, .source = {0xbad00000}, .source_offset = 0x2000};

INSTANTIATE_TEST_SUITE_P(
    Rfc5040, Terminate,
    testing::Values(
        terminate_case{"InsufficientIrd",
                       {{"Layer 2, EType 0", "20"}, {"code", "06"}, {"no headers", "00"}, {"reserved", "00"}},
                       {.code = {2, 0, 0x06}, .request = {}, .swapped_reading = {}}},
        terminate_case{"LocalCatastrophic",
                       {{"Layer 0, EType 0", "00"}, {"code", "00"}, {"no headers", "00"}, {"reserved", "00"}},
                       {.code = {0, 0, 0x00}, .request = {}, .swapped_reading = {}}},
        terminate_case{"NoBuffer",
                       {{"Layer 1, EType 2", "12"},
                        {"code", "02"},
                        {"M D", "c0"},
                        {"reserved", "00"},
                        {"DDP Segment Length", "001c"},
                        {"DDP header", "4143 00000000 00000000 00000009 00000000"}},
                       with_header({1, 2, 0x02}, 28, from_hex("4143 00000000 00000000 00000009 00000000"))},
        terminate_case{"InvalidStag",
                       {{"Layer 1, EType 1", "11"},
                        {"code", "00"},
                        {"M D", "c0"},
                        {"reserved", "00"},
                        {"DDP Segment Length", "0072"},
                        {"DDP header", "c140 dead0000 00000000 00000040"}},
                       with_header({1, 1, 0x00}, 114, from_hex("c140 dead0000 00000000 00000040"))},
        terminate_case{"InvalidSourceStag",
                       {{"Layer 0, EType 1", "01"},
                        {"code", "00"},
                        {"M D R", "e0"},
                        {"reserved", "00"},
                        {"DDP Segment Length", "002e"},
                        {"DDP header", "4141 00000000 00000001 00000001 00000000"},
                        {"RDMA header", "aabbcc01 00000000 00001000 00001000 bad00000 00000000 00002000"}},
                       with_request({0, 1, 0x00}, from_hex("4141 00000000 00000001 00000001 00000000"), bad_source)}),
    [](const auto& which) { return std::string(which.param.name); });

// RDMAP-40 RDMAP-45: ULPDU_Length of the four shapes.
TEST(TerminateMessage, UlpduLengthsOfTheShapes) {
  const octets tagged = from_hex("c140 dead0000 00000000 00000040");
  const octets untagged = from_hex("4141 00000000 00000001 00000001 00000000");
  const std::size_t header = ddp::untagged_header_size;
  EXPECT_EQ(header + emitted({.code = {2, 0, 0x02}, .request = {}, .swapped_reading = {}}).size(), 22u);
  EXPECT_EQ(header + emitted(with_header({1, 1, 0}, 114, tagged)).size(), 38u);
  EXPECT_EQ(header + emitted(with_header({1, 2, 2}, 28, untagged)).size(), 42u);
  EXPECT_EQ(header + emitted(with_request({0, 1, 0}, untagged, bad_source)).size(), 70u);
}

// RDMAP-40: a whole Terminate as a ULPDU.
TEST(TerminateMessage, VectorOfTheWholeUlpdu) {
  const ddp::untagged_header header{
      .ulp_control = control_octet(opcode::terminate), .queue = terminate_queue, .sequence = {1}};
  EXPECT_EQ(concat({ddp::test::emitted(header), emitted({.code = {2, 0, 0x06}, .request = {}, .swapped_reading = {}})}),
            from_hex("4147 00000000 00000002 00000001 00000000 20060000"));
}

// RDMAP-45 RDMAP-49: all eight combinations of M, D and R, with both kinds of DDP header. Length and DDP header are
// there with D alone, the length counts with M as well, the Read Request with R, wherever it then lies.
TEST(TerminateMessage, EveryCombinationOfHeaderBits) {
  const octets request = from_hex("aabbcc01 00000000 00001000 00001000 bad00000 00000000 00002000");
  for (const octets& header :
       {from_hex("c140 dead0000 00000000 00000040"), from_hex("4141 00000000 00000001 00000001 00000000")}) {
    for (unsigned bits = 0; bits < 8; ++bits) {
      const bool m = (bits & 4) != 0;
      const bool d = (bits & 2) != 0;
      const bool r = (bits & 1) != 0;
      octets wire = from_hex("1203");
      wire.push_back(static_cast<std::byte>(bits << 5));
      wire.push_back(std::byte{0});
      if (d) wire = concat({wire, from_hex("1234"), header});
      if (r) wire = concat({wire, request});
      const auto got = terminate_message::parse(wire);
      ASSERT_TRUE(got) << bits;
      EXPECT_EQ(got->code, (term_code{1, 2, 0x03})) << bits;
      EXPECT_EQ(got->segment_length_valid, m && d) << bits;
      EXPECT_EQ(got->segment_length, d ? 0x1234 : 0) << bits;
      EXPECT_EQ(got->ddp_header_size, d ? header.size() : 0) << bits;
      EXPECT_EQ(got->request.has_value(), r) << bits;
      if (r) {
        EXPECT_EQ(*got->request, bad_source) << bits;
      }
      EXPECT_FALSE(got->swapped_reading) << bits;
      // M without D says nothing and is not sent again.
      wire[2] &= m && !d ? std::byte{0x7F} : std::byte{0xFF};
      EXPECT_EQ(emitted(*got), wire) << bits;
    }
  }
}

// RDMAP-45: M is not set where no length goes along, whatever the caller left in the fields.
TEST(TerminateMessage, NoLengthWithoutADdpHeader) {
  terminate_message message;
  message.code = {0, 2, 0x07};
  message.segment_length_valid = true;
  message.segment_length = 46;
  EXPECT_EQ(emitted(message), from_hex("02070000"));
}

// RDMAP-40: layer and type each keep to their nibble.
TEST(TerminateMessage, EveryLayerTypeAndCode) {
  for (unsigned first = 0; first < 256; ++first) {
    for (const unsigned code : {0x00u, 0x01u, 0x80u, 0xFFu}) {
      const octets wire{static_cast<std::byte>(first), static_cast<std::byte>(code), std::byte{0}, std::byte{0}};
      const auto got = terminate_message::parse(wire);
      ASSERT_TRUE(got);
      EXPECT_EQ(got->code, (term_code{static_cast<std::uint8_t>(first >> 4), static_cast<std::uint8_t>(first & 15),
                                      static_cast<std::uint8_t>(code)}));
      EXPECT_EQ(emitted(*got), wire);
    }
  }
}

// RDMAP-47: a header adjusted to what is left of a partly served Read is what goes out.
TEST(TerminateMessage, RequestAdvancedByTheOctetsSent) {
  read_request rest = bad_source;
  rest.sink_offset += 1000;
  rest.source_offset += 1000;
  rest.size -= 1000;
  const octets wire = emitted(with_request({0, 1, 0x01}, from_hex("4141 00000000 00000001 00000001 00000000"), rest));
  EXPECT_EQ(wire, from_hex("0101e000 002e 4141 00000000 00000001 00000001 00000000"
                           "aabbcc01 00000000 000013e8 00000c18 bad00000 00000000 000023e8"));
}

// What little-endian siw sends: nibbles swapped, M D R in the low bits. Read as the RFC says, shown the other way too,
// and the headers are where siw means them to be.
TEST(TerminateMessage, SwappedReadingOfSiw) {
  const auto no_buffer = terminate_message::parse(from_hex("21030300 000a 4143 00000000 00000000 00000009 00000000"));
  ASSERT_TRUE(no_buffer);
  EXPECT_EQ(no_buffer->code, (term_code{2, 1, 0x03}));
  EXPECT_EQ(no_buffer->swapped_reading, (term_code{1, 2, 0x03}));
  EXPECT_TRUE(no_buffer->segment_length_valid);
  EXPECT_EQ(no_buffer->segment_length, 10u);
  EXPECT_EQ(no_buffer->ddp_header_size, 18u);
  EXPECT_EQ(no_buffer->ddp_header[1], std::byte{0x43});
  EXPECT_FALSE(no_buffer->request);

  const auto invalidate = terminate_message::parse(from_hex("10000700 0000 4144 00000005 00000000 00000001 00000000"));
  ASSERT_TRUE(invalidate);
  EXPECT_EQ(invalidate->ddp_header_size, 18u);
  EXPECT_FALSE(invalidate->request) << "R is set, and no RDMA header follows";

  const auto read =
      terminate_message::parse(from_hex("10000700 0000 4141 00000000 00000001 00000040 00000000"
                                        "2551e3c7 00007f53 85000000 00000040 400e9f0f 00000000 41954000"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->swapped_reading, (term_code{0, 1, 0x00}));
  EXPECT_EQ(read->request, (read_request{.sink = {0x2551e3c7},
                                         .sink_offset = 0x7f5385000000,
                                         .size = 64,
                                         .source = {0x400e9f0f},
                                         .source_offset = 0x41954000}));

  const auto write = terminate_message::parse(from_hex("11000300 0040 c140 400e9f0f 00000000 41954000"));
  ASSERT_TRUE(write);
  EXPECT_EQ(write->swapped_reading, (term_code{1, 1, 0x00}));
  EXPECT_EQ(write->ddp_header_size, 14u);

  const auto access = terminate_message::parse(from_hex("10020700"));
  ASSERT_TRUE(access);
  EXPECT_EQ(access->code, (term_code{1, 0, 0x02}));
  EXPECT_EQ(access->swapped_reading, (term_code{0, 1, 0x02}));

  // Without headers nothing tells the two apart.
  const auto ird = terminate_message::parse(from_hex("02060000"));
  ASSERT_TRUE(ird);
  EXPECT_EQ(ird->code, (term_code{0, 2, 0x06}));
  EXPECT_FALSE(ird->swapped_reading);
}

// Exactly when the low three bits speak and the high three are silent.
TEST(TerminateMessage, SwappedReadingForEveryThirdOctet) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    octets wire = from_hex("12030000");
    wire[2] = static_cast<std::byte>(bits);
    const auto got = terminate_message::parse(wire);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->swapped_reading.has_value(), (bits & 0x07) != 0 && (bits & 0xE0) == 0) << bits;
  }
}

// --- Words ---------------------------------------------------------------------------------------------------------

// Every code of RFC 5040 s4.8, RFC 5041 s7.2, RFC 5044 s8 and RFC 6581 s8, written down from the texts.
const std::vector<term_code> known_codes{
    {0, 0, 0x00}, {0, 1, 0x00}, {0, 1, 0x01}, {0, 1, 0x02}, {0, 1, 0x03}, {0, 1, 0x04}, {0, 1, 0x09},
    {0, 1, 0xFF}, {0, 2, 0x05}, {0, 2, 0x06}, {0, 2, 0x07}, {0, 2, 0x08}, {0, 2, 0x09}, {0, 2, 0xFF},
    {1, 0, 0x00}, {1, 1, 0x00}, {1, 1, 0x01}, {1, 1, 0x02}, {1, 1, 0x03}, {1, 1, 0x04}, {1, 2, 0x01},
    {1, 2, 0x02}, {1, 2, 0x03}, {1, 2, 0x04}, {1, 2, 0x05}, {1, 2, 0x06}, {2, 0, 0x01}, {2, 0, 0x02},
    {2, 0, 0x03}, {2, 0, 0x04}, {2, 0, 0x05}, {2, 0, 0x06}, {2, 0, 0x07}};

TEST(Describe, KnownCodesHaveWordsOfTheirOwnAndOthersSaySo) {
  std::set<std::string> seen;
  for (unsigned layer = 0; layer < 16; ++layer) {
    for (unsigned type = 0; type < 16; ++type) {
      for (unsigned code = 0; code < 256; ++code) {
        const term_code c{static_cast<std::uint8_t>(layer), static_cast<std::uint8_t>(type),
                          static_cast<std::uint8_t>(code)};
        const std::string text = describe(c);
        const bool unknown = text.find("unknown code") != std::string::npos;
        // Codes of an RDMAP local catastrophic error are the sender's own.
        const bool known = std::count(known_codes.begin(), known_codes.end(), c) != 0 || (layer == 0 && type == 0);
        ASSERT_EQ(unknown, !known) << text;
        ASSERT_TRUE(seen.insert(text).second) << text;  // the triple is part of it
      }
    }
  }
}

TEST(Describe, WordsDifferBetweenKnownCodes) {
  std::set<std::string> seen;
  for (const term_code c : known_codes) {
    const std::string text = describe(c);
    EXPECT_TRUE(seen.insert(text.substr(0, text.find(" ("))).second) << text;
  }
}

TEST(Describe, Examples) {
  EXPECT_EQ(describe({1, 2, 0x02}), "DDP untagged buffer: no buffer (1/2/02)");
  EXPECT_EQ(describe({2, 0, 0x02}), "MPA: CRC mismatch (2/0/02)");
  EXPECT_EQ(describe({0, 1, 0x00}), "RDMAP remote protection error: invalid STag (0/1/00)");
  EXPECT_EQ(describe({0, 2, 0xFF}), "RDMAP remote operation error: unspecified error (0/2/FF)");
  EXPECT_EQ(describe({1, 2, 0x00}), "DDP untagged buffer: unknown code (1/2/00)");
  EXPECT_EQ(describe({9, 15, 0xAB}), "unknown layer: unknown code (9/15/AB)");
}

}  // namespace
}  // namespace iwarp::rdmap
