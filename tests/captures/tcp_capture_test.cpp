// Capture reading and TCP rebuilding: made-up frames whose octets are known.
#include "samples/support/tcp_capture.hpp"

#include "tests/support/hex.hpp"
#include "tests/support/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace iwarp::capture {
namespace {

using test_support::from_hex;
using test_support::random_source;
using bytes = std::vector<std::byte>;

constexpr std::uint8_t flag_fin = 0x01;
constexpr std::uint8_t flag_syn = 0x02;
constexpr std::uint8_t flag_rst = 0x04;
constexpr std::uint8_t flag_ack = 0x10;

endpoint host(std::uint8_t number, std::uint16_t port, bool ipv6 = false) {
  endpoint e{.ipv6 = ipv6, .port = port};
  if (ipv6) {
    e.address = {0xfd, 0x99};
    e.address[15] = number;
  } else {
    e.address = {10, 0, 0, number};
  }
  return e;
}

void append(bytes& out, const bytes& more) { out.insert(out.end(), more.begin(), more.end()); }
template <std::unsigned_integral T>
void append_be(bytes& out, T value) {
  bytes octets(sizeof(T));
  store_be<T>(std::span<std::byte, sizeof(T)>(octets), value);
  append(out, octets);
}
void append_address(bytes& out, const endpoint& e) {
  for (std::size_t i = 0; i < (e.ipv6 ? 16u : 4u); ++i) out.push_back(static_cast<std::byte>(e.address[i]));
}

struct shape {
  bool vlan = false;
  std::size_t ipv4_options = 0;  // octets, a multiple of 4
  bool ipv6_hop_by_hop = false;
  std::size_t tcp_options = 12;  // octets, a multiple of 4
  std::size_t ethernet_padding = 0;
  std::uint16_t fragment_word = 0;
};

bytes frame(const endpoint& from, const endpoint& to, std::uint32_t sequence, std::uint8_t flags, const bytes& payload,
            const shape& s = {}) {
  bytes out = from_hex("020000000011 020000000012");
  if (s.vlan) append(out, from_hex("8100 0064"));
  const std::size_t tcp = 20 + s.tcp_options + payload.size();
  if (from.ipv6) {
    append(out, from_hex("86dd 60000000"));
    append_be(out, static_cast<std::uint16_t>(tcp + (s.ipv6_hop_by_hop ? 8 : 0)));
    append(out, from_hex(s.ipv6_hop_by_hop ? "00 40" : "06 40"));
    append_address(out, from);
    append_address(out, to);
    if (s.ipv6_hop_by_hop) append(out, from_hex("06 00 01 04 00000000"));
  } else {
    append(out, from_hex("0800"));
    out.push_back(static_cast<std::byte>(0x45 + s.ipv4_options / 4));
    out.push_back(std::byte{0});
    append_be(out, static_cast<std::uint16_t>(20 + s.ipv4_options + tcp));
    append_be(out, std::uint16_t{1});
    append_be(out, s.fragment_word);
    append(out, from_hex("40 06 0000"));
    append_address(out, from);
    append_address(out, to);
    append(out, bytes(s.ipv4_options, std::byte{1}));
  }
  append_be(out, from.port);
  append_be(out, to.port);
  append_be(out, sequence);
  append_be(out, std::uint32_t{0});
  out.push_back(static_cast<std::byte>((20 + s.tcp_options) / 4 << 4));
  out.push_back(static_cast<std::byte>(flags));
  append(out, from_hex("0100 0000 0000"));
  append(out, bytes(s.tcp_options, std::byte{1}));
  append(out, payload);
  append(out, bytes(s.ethernet_padding, std::byte{0xee}));
  return out;
}

std::vector<tcp_stream> rebuild(const std::vector<bytes>& frames) {
  stream_rebuilder rebuilder;
  std::uint32_t index = 0;
  for (const bytes& f : frames) rebuilder.add(f, ++index);
  return rebuilder.finish();
}

const bytes hello = from_hex("68656c6c6f");
const bytes world = from_hex("776f726c64");

TEST(TcpCapture, RebuildsBothDirectionsOfEveryShapeOfFrame) {
  for (const bool ipv6 : {false, true}) {
    for (const shape& s : {shape{}, shape{.vlan = true}, shape{.ipv4_options = 8}, shape{.ipv6_hop_by_hop = true},
                           shape{.tcp_options = 0}, shape{.tcp_options = 40}, shape{.ethernet_padding = 9}}) {
      const endpoint client = host(1, 40000, ipv6);
      const endpoint server = host(2, 7174, ipv6);
      const auto streams = rebuild(
          {frame(client, server, 99, flag_syn, {}, s), frame(server, client, 499, flag_syn | flag_ack, {}, s),
           frame(client, server, 100, flag_ack, {}, s), frame(client, server, 100, flag_ack, hello, s),
           frame(server, client, 500, flag_ack, world, s), frame(client, server, 105, flag_ack | flag_fin, {}, s)});
      ASSERT_EQ(streams.size(), 1u);
      EXPECT_EQ(streams[0].client, client);
      EXPECT_EQ(streams[0].server, server);
      EXPECT_EQ(streams[0].to_server.octets, hello);
      EXPECT_EQ(streams[0].to_client.octets, world);
      EXPECT_EQ(streams[0].to_server.closed, closing::fin);
      EXPECT_EQ(streams[0].to_client.closed, closing::open);
      ASSERT_EQ(streams[0].pieces.size(), 2u);
      EXPECT_EQ(streams[0].pieces[0].frame_index, 4u);
      EXPECT_EQ(streams[0].pieces[0].dir, direction::to_server);
      EXPECT_EQ(streams[0].pieces[1].frame_index, 5u);
      EXPECT_EQ(streams[0].pieces[1].dir, direction::to_client);
    }
  }
}

TEST(TcpCapture, NamesEndpoints) {
  EXPECT_EQ(to_string(host(1, 7174)), "10.0.0.1:7174");
  EXPECT_EQ(to_string(host(0x11, 7174, true)), "[fd99::11]:7174");
}

// Any order, any repetition, any overlap of the segments of one stream gives the stream, across sequence wrap.
TEST(TcpCapture, RebuildsFromShuffledRepeatedAndOverlappingSegments) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_source random(seed);
    const bytes octets = random.octets(random.between(1, 3000));
    const auto isn = static_cast<std::uint32_t>(0u - random.between(0, 4000));
    const auto cut = [&](std::size_t begin, std::size_t size) {
      return frame(host(1, 40000), host(2, 7174), isn + 1 + static_cast<std::uint32_t>(begin), flag_ack,
                   bytes(octets.begin() + static_cast<std::ptrdiff_t>(begin),
                         octets.begin() + static_cast<std::ptrdiff_t>(begin + size)));
    };
    std::vector<bytes> frames;
    for (std::size_t at = 0; at < octets.size();) {
      const std::size_t size = 1 + random.below(std::min<std::size_t>(400, octets.size() - at));
      frames.push_back(cut(at, size));
      at += size;
    }
    for (std::size_t more = random.below(20); more > 0; --more) {
      const std::size_t begin = random.below(octets.size());
      frames.push_back(cut(begin, 1 + random.below(octets.size() - begin)));
    }
    frames.push_back(frame(host(1, 40000), host(2, 7174), isn + 1 + static_cast<std::uint32_t>(octets.size()),
                           flag_ack | flag_fin, {}));
    std::shuffle(frames.begin(), frames.end(), random);
    frames.insert(frames.begin(), frame(host(1, 40000), host(2, 7174), isn, flag_syn, {}));
    const auto streams = rebuild(frames);
    ASSERT_EQ(streams.size(), 1u);
    ASSERT_EQ(streams[0].to_server.octets, octets);
    EXPECT_EQ(streams[0].to_server.missing, 0u);
    EXPECT_EQ(streams[0].to_server.closed, closing::fin);
    // The pieces tile the stream.
    std::size_t end = 0;
    std::uint32_t last_frame = 0;
    for (const piece& p : streams[0].pieces) {
      EXPECT_EQ(p.begin, end);
      EXPECT_GE(p.frame_index, last_frame);
      EXPECT_GT(p.size, 0u);
      end += p.size;
      last_frame = p.frame_index;
    }
    EXPECT_EQ(end, octets.size());
  }
}

// The receiver whose traffic it was kept what came first; so must the reader.
TEST(TcpCapture, WhereSegmentsDisagreeTheFirstStays) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto streams = rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 4, flag_ack, from_hex("0404")),
                                frame(a, b, 1, flag_ack, from_hex("010203f4f506")),
                                frame(a, b, 1, flag_ack, from_hex("f1f2f3f4f5f607"))});
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].to_server.octets, from_hex("01020304040607"));
}

TEST(TcpCapture, SegmentBoundariesAreKept) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto streams =
      rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 4, flag_ack, from_hex("040506")),
               frame(a, b, 7, flag_ack, from_hex("07")), frame(a, b, 1, flag_ack, from_hex("010203"))});
  ASSERT_EQ(streams.size(), 1u);
  ASSERT_EQ(streams[0].pieces.size(), 3u);
  EXPECT_EQ(streams[0].pieces[0].size, 3u);
  EXPECT_EQ(streams[0].pieces[1].size, 3u);
  EXPECT_EQ(streams[0].pieces[2].size, 1u);
  for (const piece& p : streams[0].pieces) EXPECT_EQ(p.frame_index, 4u);  // the one that filled the hole
}

TEST(TcpCapture, SaysHowMuchIsMissing) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto hole =
      rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 1, flag_ack, hello), frame(a, b, 16, flag_ack, world)});
  ASSERT_EQ(hole.size(), 1u);
  EXPECT_EQ(hole[0].to_server.octets, hello);
  EXPECT_EQ(hole[0].to_server.missing, 15u);  // ten of the hole, five that cannot be joined to the rest
  const auto end_lost = rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 8, flag_fin, {})});
  EXPECT_EQ(end_lost[0].to_server.missing, 7u);
  EXPECT_EQ(end_lost[0].to_server.closed, closing::open);
  // A frame that was captured in part counts for what is there.
  bytes cut_short = frame(a, b, 1, flag_ack | flag_fin, hello);
  cut_short.erase(cut_short.end() - 2, cut_short.end());
  const auto in_part = rebuild({frame(a, b, 0, flag_syn, {}), cut_short});
  EXPECT_EQ(in_part[0].to_server.octets.size(), 3u);
  EXPECT_EQ(in_part[0].to_server.missing, 2u);
}

TEST(TcpCapture, ResetEndsADirection) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto streams = rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 1, flag_rst, {})});
  EXPECT_EQ(streams[0].to_server.closed, closing::reset);
  EXPECT_EQ(streams[0].to_client.closed, closing::open);
}

TEST(TcpCapture, ReusedPortsAreANewStreamAndARepeatedSynIsNot) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto streams =
      rebuild({frame(a, b, 0, flag_syn, {}), frame(a, b, 0, flag_syn, {}), frame(a, b, 1, flag_ack, hello),
               frame(a, b, 0, flag_syn, {}), frame(a, b, 7000, flag_syn, {}), frame(a, b, 7001, flag_ack, world)});
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].to_server.octets, hello);
  EXPECT_EQ(streams[1].to_server.octets, world);
}

TEST(TcpCapture, BeginsAnywhereInAConnection) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  const auto answered_first = rebuild({frame(b, a, 10, flag_syn | flag_ack, {}), frame(b, a, 11, flag_ack, world)});
  ASSERT_EQ(answered_first.size(), 1u);
  EXPECT_EQ(answered_first[0].client, a);
  EXPECT_EQ(answered_first[0].to_client.octets, world);
  const auto middle = rebuild({frame(b, a, 10, flag_ack, {}), frame(b, a, 11, flag_ack, world)});
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle[0].client, b);
  EXPECT_EQ(middle[0].to_server.octets, world);
}

TEST(TcpCapture, PassesOverFragmentsOtherProtocolsAndFramesCutAnywhere) {
  const endpoint a = host(1, 40000);
  const endpoint b = host(2, 7174);
  EXPECT_TRUE(rebuild({frame(a, b, 1, flag_ack, hello, {.fragment_word = 0x2000})}).empty());
  EXPECT_TRUE(rebuild({frame(a, b, 1, flag_ack, hello, {.fragment_word = 0x00b9})}).empty());
  bytes udp = frame(a, b, 1, flag_ack, hello);
  udp[23] = std::byte{17};
  EXPECT_TRUE(rebuild({udp}).empty());
  for (const bool ipv6 : {false, true}) {
    const bytes whole = frame(host(1, 40000, ipv6), host(2, 7174, ipv6), 1, flag_ack, hello, {.ipv6_hop_by_hop = true});
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const auto streams = rebuild({bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))});
      ASSERT_LE(streams.size(), 1u);
      EXPECT_EQ(streams.empty() ? 0 : streams[0].to_server.octets.size(),
                n > whole.size() - hello.size() ? n - (whole.size() - hello.size()) : 0)
          << "prefix " << n;
    }
  }
}

TEST(TcpCapture, AnyOctetsAreSurvived) {
  random_source random(7);
  for (int round = 0; round < 20000; ++round) {
    bytes f = frame(host(1, 40000, round % 2 == 1), host(2, 7174, round % 2 == 1), 1, flag_ack, hello);
    for (std::size_t n = 1 + random.below(4); n > 0; --n) f[12 + random.below(f.size() - 12)] = random.octets(1)[0];
    EXPECT_LE(rebuild({f}).size(), 1u);
  }
}

class TcpCaptureFile : public testing::Test {
 protected:
  ~TcpCaptureFile() override { std::filesystem::remove(path_); }

  void write(int link_layer, const std::vector<bytes>& frames) {
    pcap_t* pcap = pcap_open_dead(link_layer, 65535);
    pcap_dumper_t* out = pcap_dump_open(pcap, path_.c_str());
    ASSERT_NE(out, nullptr);
    for (const bytes& f : frames) {
      pcap_pkthdr header{};
      header.caplen = header.len = static_cast<bpf_u_int32>(f.size());
      pcap_dump(reinterpret_cast<u_char*>(out), &header, reinterpret_cast<const u_char*>(f.data()));
    }
    pcap_dump_close(out);
    pcap_close(pcap);
  }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("tcp_capture_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".pcap");
};

TEST_F(TcpCaptureFile, IsRead) {
  write(DLT_EN10MB, {frame(host(1, 40000), host(2, 7174), 0, flag_syn, {}),
                     frame(host(1, 40000), host(2, 7174), 1, flag_ack, hello)});
  const auto streams = read_streams(path_);
  ASSERT_TRUE(streams) << streams.error();
  ASSERT_EQ(streams->size(), 1u);
  EXPECT_EQ((*streams)[0].to_server.octets, hello);
}

TEST_F(TcpCaptureFile, ThatCannotBeReadSaysWhyInOneLine) {
  const auto reason = [&] {
    const auto streams = read_streams(path_);
    EXPECT_FALSE(streams);
    const std::string text = streams ? "" : streams.error();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.find(path_.filename().string()), std::string::npos) << text;
    return text;
  };
  EXPECT_THAT(reason(), testing::HasSubstr("No such file"));
  std::ofstream(path_) << "not a capture, but long enough to be looked at";
  EXPECT_THAT(reason(), testing::HasSubstr("unknown file format"));
  write(DLT_IEEE802_11, {});
  EXPECT_THAT(reason(), testing::HasSubstr("IEEE802_11"));
  write(DLT_EN10MB, {frame(host(1, 40000), host(2, 7174), 0, flag_syn, {})});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_THAT(reason(), testing::HasSubstr("truncated"));
}

}  // namespace
}  // namespace iwarp::capture
