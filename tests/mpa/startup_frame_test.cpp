#include "mpa/startup_frame.hpp"

#include "mpa/error.hpp"
#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <string>

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::counting;
using test::error_of;
using test::from_hex;
using test::octets;
using test::to_hex;

constexpr const char* request_key = "4d504120 49442052 65712046 72616d65";
constexpr const char* reply_key = "4d504120 49442052 65702046 72616d65";

startup_frame frame_of(startup_header header, std::optional<enhanced_data> enhanced = {}, const octets& data = {}) {
  startup_frame f;
  f.header = header;
  f.enhanced = enhanced;
  f.data_size = data.size();
  std::ranges::copy(data, f.data.begin());
  return f;
}

octets emitted(const startup_frame& f) {
  std::array<std::byte, startup_fixed_size + max_private_data> out;
  out.fill(std::byte{0xA5});
  const std::size_t n = f.emit(out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)};
}

octets data_of(const startup_frame& f) { return {f.private_data().begin(), f.private_data().end()}; }

result<startup_frame> read(const octets& wire, frame_kind expected) {
  startup_reader reader(expected);
  auto taken = reader.consume(wire);
  if (!taken) return fail(taken.error());
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(*taken, wire.size());
  return reader.frame();
}

struct field {
  const char* what;
  std::string octets;
};
struct frame_case {
  const char* name;
  std::vector<field> fields;
  startup_frame want;
};
void PrintTo(const frame_case& c, std::ostream* out) { *out << c.name; }

class StartupFrame : public testing::TestWithParam<frame_case> {
 protected:
  octets wire() const {
    octets out;
    for (const field& f : GetParam().fields) test::append(out, from_hex(f.octets));
    return out;
  }
};

// MPA-46 MPA-48 MPA-49 MPA-53 MPA-56 MPA-82 MPA-84 MPA-85
TEST_P(StartupFrame, EmitsItsVector) { EXPECT_EQ(to_hex(emitted(GetParam().want)), to_hex(wire())); }

// MPA-85: and reads back field by field.
TEST_P(StartupFrame, ReadsItsVector) {
  const startup_frame& want = GetParam().want;
  const auto got = read(wire(), want.header.kind);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->header.kind, want.header.kind);
  EXPECT_EQ(got->header.markers, want.header.markers);
  EXPECT_EQ(got->header.crc, want.header.crc);
  EXPECT_EQ(got->header.rejected, want.header.rejected);
  EXPECT_EQ(got->header.enhanced, want.enhanced.has_value());
  EXPECT_EQ(got->header.revision, want.header.revision);
  EXPECT_EQ(got->header.private_data_length, wire().size() - startup_fixed_size);
  EXPECT_EQ(got->enhanced, want.enhanced);
  EXPECT_EQ(data_of(*got), data_of(want));
}

// MPA-58: a frame is whole with its last octet and not before, however it is cut, and takes nothing behind it.
TEST_P(StartupFrame, IsCompleteAtItsLastOctetWhateverTheCut) {
  const octets whole = wire();
  octets with_more = whole;
  test::append(with_more, from_hex("000e"));
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    startup_reader reader(GetParam().want.header.kind);
    ASSERT_EQ(reader.consume(const_bytes{with_more}.first(cut)), cut);
    ASSERT_EQ(reader.begun(), cut != 0);
    ASSERT_EQ(reader.complete(), cut == whole.size()) << "prefix of " << cut;
    ASSERT_EQ(reader.consume(const_bytes{with_more}.subspan(cut)), whole.size() - cut);
    ASSERT_TRUE(reader.complete());
    ASSERT_EQ(reader.consume(from_hex("000e")), 0u);
    ASSERT_EQ(emitted(reader.frame()), whole);
  }
}

TEST_P(StartupFrame, OneOctetAtATime) {
  startup_reader reader(GetParam().want.header.kind);
  for (const std::byte b : wire()) {
    ASSERT_FALSE(reader.complete());
    ASSERT_EQ(reader.consume({&b, 1}), 1u);
  }
  ASSERT_TRUE(reader.complete());
  EXPECT_EQ(emitted(reader.frame()), wire());
}

INSTANTIATE_TEST_SUITE_P(
    AppendixA1, StartupFrame,
    testing::Values(
        frame_case{"RequestRevision1",
                   {{"key", request_key}, {"C", "40"}, {"Rev", "01"}, {"PD_Length", "0000"}},
                   frame_of({.kind = frame_kind::request, .crc = true, .revision = 1})},
        frame_case{"RequestRevision2PeerToPeer",
                   {{"key", request_key},
                    {"C S", "50"},
                    {"Rev", "02"},
                    {"PD_Length", "0008"},
                    {"A IRD", "8010"},
                    {"C D ORD", "c010"},
                    {"PING", "50494e47"}},
                   frame_of({.kind = frame_kind::request, .crc = true, .revision = 2},
                            enhanced_data{true, {false, true, true}, 16, 16}, from_hex("50494e47"))},
        frame_case{"ReplyRevision2WriteRtr",
                   {{"key", reply_key},
                    {"C S", "50"},
                    {"Rev", "02"},
                    {"PD_Length", "0004"},
                    {"A IRD", "8010"},
                    {"C ORD", "8010"}},
                   frame_of({.kind = frame_kind::reply, .crc = true, .revision = 2},
                            enhanced_data{true, {false, true, false}, 16, 16})},
        frame_case{"RejectingReplyRevision1",
                   {{"key", reply_key}, {"C R", "60"}, {"Rev", "01"}, {"PD_Length", "0000"}},
                   frame_of({.kind = frame_kind::reply, .crc = true, .rejected = true, .revision = 1})},
        frame_case{
            "RequestOfSiw",
            {{"key", request_key}, {"S", "10"}, {"Rev", "02"}, {"PD_Length", "0004"}, {"IRD", "0010"}, {"ORD", "0010"}},
            frame_of({.kind = frame_kind::request, .crc = false, .revision = 2}, enhanced_data{false, {}, 16, 16})},
        frame_case{"MarkersAndSendRtr",
                   {{"key", reply_key},
                    {"M C S", "d0"},
                    {"Rev", "02"},
                    {"PD_Length", "0005"},
                    {"A B IRD", "ffff"},
                    {"ORD", "3ffe"},
                    {"data", "7f"}},
                   frame_of({.kind = frame_kind::reply, .markers = true, .crc = true, .revision = 2},
                            enhanced_data{true, {true, false, false}, 0x3FFF, 0x3FFE}, from_hex("7f"))},
        frame_case{"Revision2Unenhanced",
                   {{"key", request_key}, {"C", "40"}, {"Rev", "02"}, {"PD_Length", "0002"}, {"data", "1234"}},
                   frame_of({.kind = frame_kind::request, .crc = true, .revision = 2}, {}, from_hex("1234"))}),
    [](const auto& p) { return std::string(p.param.name); });

// MPA-50 MPA-51: a peer of another protocol is found out at its first octet that differs.
TEST(StartupReader, FailsAtTheFirstOctetOfAnotherKey) {
  for (const frame_kind expected : {frame_kind::request, frame_kind::reply}) {
    const octets key = from_hex(expected == frame_kind::request ? request_key : reply_key);
    for (std::size_t i = 0; i < key.size(); ++i) {
      octets bad = key;
      bad[i] ^= std::byte{0x80};
      startup_reader reader(expected);
      ASSERT_EQ(reader.consume(const_bytes{bad}.first(i)), i);
      ASSERT_EQ(error_of(reader.consume(const_bytes{bad}.subspan(i, 1))), errc::bad_key) << i;
      ASSERT_EQ(error_of(reader.consume(key)), errc::bad_key) << "stays failed";
      ASSERT_FALSE(reader.complete());
    }
  }
  const std::string http = "GET / HTTP/1.1\r\n";
  startup_reader reader(frame_kind::request);
  EXPECT_EQ(error_of(reader.consume(as_const_bytes(http.data(), http.size()))), errc::bad_key);
}

// MPA-69
TEST(StartupReader, TellsAPeerOfTheSameRole) {
  for (const frame_kind expected : {frame_kind::request, frame_kind::reply}) {
    const octets other = from_hex(expected == frame_kind::request ? reply_key : request_key) + from_hex("40010000");
    startup_reader at_once(expected);
    EXPECT_EQ(error_of(at_once.consume(other)), errc::same_role);
    startup_reader octet_by_octet(expected);
    EXPECT_EQ(octet_by_octet.consume(const_bytes{other}.first(9)), 9u);
    EXPECT_EQ(error_of(octet_by_octet.consume(const_bytes{other}.subspan(9, 1))), errc::same_role);
    const auto parsed = startup_header::parse(const_bytes{other}.first<startup_fixed_size>(), expected);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error(), errc::same_role);
  }
}

// MPA-55 MPA-83
TEST(StartupHeader, SpeaksRevisions1And2Alone) {
  for (unsigned revision = 0; revision < 256; ++revision) {
    octets wire = from_hex(std::string(request_key) + "40000000");
    wire[17] = static_cast<std::byte>(revision);
    const auto got = startup_header::parse(const_bytes{wire}.first<startup_fixed_size>(), frame_kind::request);
    ASSERT_EQ(got.has_value(), revision == 1 || revision == 2) << revision;
    if (!got) {
      ASSERT_EQ(got.error(), errc::bad_revision);
    } else {
      ASSERT_EQ(got->revision, revision);
    }
  }
}

// MPA-57 MPA-72 MPA-84
TEST(StartupHeader, BoundsThePrivateDataBeforeAnythingIsStored) {
  for (unsigned length = 0; length < 65536; ++length) {
    for (const char* flags : {"4001", "5001", "4002", "5002"}) {
      octets wire = from_hex(std::string(reply_key) + flags + "0000");
      wire[18] = static_cast<std::byte>(length >> 8);
      wire[19] = static_cast<std::byte>(length & 0xff);
      const bool enhanced = std::string(flags) == "5002";
      const auto got = startup_header::parse(const_bytes{wire}.first<startup_fixed_size>(), frame_kind::reply);
      ASSERT_EQ(got.has_value(), length <= 512 && (!enhanced || length >= 4)) << flags << ' ' << length;
      if (!got) {
        ASSERT_EQ(got.error(), errc::bad_private_data);
      } else {
        ASSERT_EQ(got->enhanced, enhanced);
      }
    }
    if (length == 600) length = 65000;
  }
}

// MPA-52 MPA-54: every flag octet reads; R of a Request and the reserved bits mean nothing.
TEST(StartupHeader, ReadsEveryFlagOctet) {
  for (const frame_kind kind : {frame_kind::request, frame_kind::reply}) {
    for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
      for (unsigned flags = 0; flags < 256; ++flags) {
        octets wire = from_hex(std::string(kind == frame_kind::request ? request_key : reply_key) + "00000004");
        wire[16] = static_cast<std::byte>(flags);
        wire[17] = static_cast<std::byte>(revision);
        const auto got = startup_header::parse(const_bytes{wire}.first<startup_fixed_size>(), kind);
        const startup_header want{.kind = kind,
                                  .markers = (flags & 0x80) != 0,
                                  .crc = (flags & 0x40) != 0,
                                  .rejected = kind == frame_kind::reply && (flags & 0x20) != 0,
                                  .enhanced = revision == 2 && (flags & 0x10) != 0,
                                  .revision = revision,
                                  .private_data_length = 4};
        ASSERT_TRUE(got);
        ASSERT_EQ(*got, want) << flags;
        // MPA-54: reserved bits are sent 0.
        std::array<std::byte, startup_fixed_size> out;
        got->emit(out);
        unsigned known = revision == 2 ? 0xF0 : 0xE0;
        if (kind == frame_kind::request) known &= ~0x20u;
        ASSERT_EQ(std::to_integer<unsigned>(out[16]), flags & known);
      }
    }
  }
}

// MPA-52
TEST(StartupHeader, ARequestNeverCarriesR) {
  std::array<std::byte, startup_fixed_size> out;
  startup_header{.kind = frame_kind::request, .rejected = true}.emit(out);
  EXPECT_EQ(out[16], std::byte{0x40});
}

// MPA-85: all values of both words, there and back.
TEST(EnhancedData, IsTwoWordsOfFlagsAnd14Bits) {
  for (unsigned word = 0; word < 65536; ++word) {
    std::array<std::byte, enhanced_data_size> in{};
    store_be(std::span{in}.first<2>(), static_cast<std::uint16_t>(word));
    store_be(std::span{in}.last<2>(), static_cast<std::uint16_t>(~word));
    const enhanced_data got = enhanced_data::parse(in);
    ASSERT_EQ(got.peer_to_peer, (word & 0x8000) != 0);
    ASSERT_EQ(got.rtr.send, (word & 0x4000) != 0);
    ASSERT_EQ(got.ird, word & 0x3FFF);
    ASSERT_EQ(got.rtr.write, (word & 0x8000) == 0);
    ASSERT_EQ(got.rtr.read, (word & 0x4000) == 0);
    ASSERT_EQ(got.ord, ~word & 0x3FFF);
    std::array<std::byte, enhanced_data_size> out;
    got.emit(out);
    ASSERT_EQ(out, in);
  }
}

// MPA-56 MPA-59 MPA-72 MPA-84
TEST(StartupFrameSizes, EveryLengthOfPrivateDataArrivesIntact) {
  for (const bool enhanced : {false, true}) {
    const std::size_t most = enhanced ? max_enhanced_ulp_data : max_private_data;
    for (std::size_t size = 0; size <= most; ++size) {
      const octets data = counting(size, size);
      const startup_frame sent =
          frame_of({.kind = frame_kind::request, .revision = 2},
                   enhanced ? std::optional(enhanced_data{.ird = 3, .ord = 5}) : std::nullopt, data);
      const octets wire = emitted(sent);
      ASSERT_EQ(wire.size(), 20 + size + (enhanced ? 4 : 0));
      const auto got = read(wire, frame_kind::request);
      ASSERT_TRUE(got);
      ASSERT_EQ(data_of(*got), data) << size;
      ASSERT_EQ(got->enhanced, sent.enhanced);
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
