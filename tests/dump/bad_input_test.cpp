// Captures cut anywhere, damaged anywhere, or made to hurt: whatever could be decoded is, nothing crashes, and memory
// stays bounded.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/dump/catalog.hpp"
#include "tests/dump/collected.hpp"
#include "tests/support/random.hpp"
#include "tools/common/failure.hpp"
#include "tools/dump/capture_file.hpp"

namespace iwarp::dump_test {
namespace {

/// How the file ended, or was refused; empty for a whole one.
std::string read_file(octets file, collected& out) {
  std::FILE* stream = fmemopen(file.data(), file.size(), "rb");
  try {
    dump::capture_file capture(stream, "input", "");
    dump::analyser analyser({}, out);
    for (dump::packet p; capture.next(p);) analyser.add(p);
    analyser.finish();
    return capture.damage();
  } catch (const tools::failure& problem) {
    return problem.what();
  }
}

TEST(BadInput, AFileCutAnywhereGivesWhatIsInFrontOfTheCut) {
  talk t;
  for (std::uint32_t i = 1; i <= 3; ++i) t.say(side::client, send(i, counted(40)));
  const octets whole = pcap_file(t.tcp.frames, 1);
  std::uint64_t most = 0;
  for (std::size_t n = 1; n <= whole.size(); ++n) {
    collected got;
    const std::string damage = read_file(octets(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)), got);
    std::size_t ends = 24;
    bool between = n == ends;
    for (const frame& f : t.tcp.frames) between = between || n == (ends += 16 + f.data.size());
    EXPECT_EQ(damage.empty(), between) << n << " " << damage;
    EXPECT_TRUE(damage.empty() || damage.starts_with("input: ")) << damage;
    EXPECT_GE(got.summary.messages, most) << n;
    EXPECT_EQ(got.rules(), "") << n;
    most = got.summary.messages;
  }
  EXPECT_EQ(most, 3u);
}

TEST(BadInput, DamagedOctets) {
  for (const entry& e : catalog()) {
    const octets whole = pcap_file(e.frames, e.link_type);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      test_support::random_source random(seed);
      octets file = whole;
      for (std::size_t n = random.between(1, 8); n != 0; --n) {
        file[random.below(file.size())] = static_cast<std::byte>(random.below(256));
      }
      collected got;
      (void)read_file(file, got);
      EXPECT_LE(got.summary.messages, got.summary.fpdus + 12) << e.name << " seed " << seed;
    }
  }
}

/// Feeds frames made on the fly and watches the memory.
class watched {
 public:
  explicit watched(dump::analyser_options options = {}) : analyser_(std::move(options), out) {}
  void add(std::vector<frame>& frames) {
    for (const frame& f : frames) {
      analyser_.add(
          {.frame = {.number = ++number_, .time = f.time}, .octets = f.data, .length = f.length, .link_type = 1});
      most = std::max(most, analyser_.memory_in_use());
    }
    frames.clear();
  }
  void finish() { analyser_.finish(); }
  collected out;
  std::size_t most = 0;

 private:
  dump::analyser analyser_;
  std::uint64_t number_ = 0;
};

constexpr std::size_t mebibyte = 1024 * 1024;

TEST(BadInput, OctetsBehindAHoleThatNothingFillsAreBounded) {
  // Nobody acknowledges anything: only the bound says that the hole is one.
  watched w;
  talk t;
  (void)t.client(send(1, counted(1000)));
  t.tcp.lose(side::client, 1024);
  for (std::uint32_t i = 2; i <= 20000; ++i) {
    t.say(side::client, send(i, counted(1000)));
    w.add(t.tcp.frames);
  }
  EXPECT_LT(w.most, 8 * mebibyte);
  w.finish();
  EXPECT_EQ(w.out.summary.messages, 19999u);
  EXPECT_EQ(w.out.summary.lost_octets, 1024u);
}

TEST(BadInput, ManyConnectionsWithHolesAreBounded) {
  watched w({.ports = {}, .limits = {.all_octets = 4 * mebibyte, .connections = 1000}});
  for (std::uint32_t i = 0; i != 3000; ++i) {
    talk t({}, {}, {.client_port = static_cast<std::uint16_t>(1024 + i)});
    t.tcp.lose(side::client, 100);
    for (std::uint32_t j = 1; j <= 20; ++j) t.say(side::client, send(j, counted(1000)));
    w.add(t.tcp.frames);
  }
  EXPECT_LT(w.most, 6 * mebibyte);
  w.finish();
  EXPECT_EQ(w.out.summary.streams, 3000u);
}

TEST(BadInput, ManyHalfOpenConnectionsAreForgotten) {
  watched w({.ports = {}, .limits = {.connections = 100}});
  std::size_t before = 0;
  for (std::uint32_t i = 0; i != 20000; ++i) {
    tcp_talk t({.client_port = static_cast<std::uint16_t>(i), .server_port = static_cast<std::uint16_t>(i >> 8)});
    t.open();
    t.frames.resize(1);
    w.add(t.frames);
    if (i == 1000) before = w.most;
  }
  EXPECT_LE(w.most, before + 1024);
  w.finish();
  EXPECT_EQ(w.out.summary.tcp_streams, 20000u);
}

TEST(BadInput, AMidStreamConnectionThatIsNotIwarpIsGivenUp) {
  watched w;
  tcp_talk t;
  for (std::size_t i = 0; i != 6000; ++i) {
    t.say(i % 2 == 0 ? side::client : side::server, counted(1448, i));
    w.add(t.frames);
  }
  EXPECT_LT(w.most, 4 * mebibyte);
  w.finish();
  EXPECT_EQ(w.out.summary.streams, 0u);
}

TEST(BadInput, ReadRequestsThatNobodyAnswersAreBounded) {
  watched w;
  talk t({.crc = false}, {.crc = false});
  t.client = fpdu_stream(false);
  for (std::uint32_t i = 1; i <= 70000; ++i) {
    t.say(side::client, read_request(i, {.size = 1}));
    w.add(t.tcp.frames);
  }
  w.finish();
  EXPECT_EQ(w.out.summary.messages, 70000u);
}

TEST(BadInput, FragmentsWithoutEndAreBounded) {
  dump::ip_reader reader;
  octets packet = from_hex("45000000 00002000 40060000 c0000201 c0000202") + counted(1400);
  store_be(std::span(packet).subspan(2).first<2>(), static_cast<std::uint16_t>(packet.size()));
  for (std::uint32_t i = 0; i != 100000; ++i) {
    store_be(std::span(packet).subspan(4).first<2>(), static_cast<std::uint16_t>(i));
    EXPECT_FALSE(reader.read(packet));
  }
}

}  // namespace
}  // namespace iwarp::dump_test
