// TCP put together from what a capture has: out of order, again, overlapping, missing, from the middle on.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/dump/collected.hpp"
#include "tests/dump/synthetic.hpp"
#include "tests/support/random.hpp"

namespace iwarp::dump_test {
namespace {

using dump::hole_kind;

/// A Send of `size` octets in `pieces` TCP segments between the start-up and the close; indices of those segments'
/// frames.
struct one_send {
  explicit one_send(std::size_t size = 1000, std::size_t pieces = 4) {
    const octets fpdu = t.client(send(1, counted(size)));
    begin = t.tcp.frames.size();
    const std::size_t each = (fpdu.size() + pieces - 1) / pieces;
    for (std::size_t at = 0; at < fpdu.size(); at += each) {
      const auto from = fpdu.begin() + static_cast<std::ptrdiff_t>(at);
      t.tcp.segment(side::client, octets(from, from + static_cast<std::ptrdiff_t>(std::min(each, fpdu.size() - at))));
    }
    end = t.tcp.frames.size();
  }
  talk t;
  std::size_t begin;
  std::size_t end;
};

TEST(Reassembly, PutsAnyOrderOfSegmentsRight) {
  one_send s;
  s.t.tcp.close();
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    std::vector<frame> frames = s.t.tcp.frames;
    for (std::size_t i = 0; i != 4; ++i) frames[s.begin + i] = s.t.tcp.frames[s.begin + order[i]];
    const collected got = analyse(frames);
    EXPECT_EQ(got.operations(), "Send");
    EXPECT_EQ(got.rules(), "");
    ASSERT_EQ(got.payloads.size(), 1u);
    EXPECT_EQ(got.payloads[0], counted(1000));
  } while (std::ranges::next_permutation(order).found);
}

TEST(Reassembly, TakesRetransmissionsOnce) {
  one_send s;
  std::vector<frame> frames = s.t.tcp.frames;
  for (std::size_t i = s.begin; i != s.end; ++i) {
    frames.push_back(s.t.tcp.frames[i]);
    frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(i), s.t.tcp.frames[i]);
  }
  const collected got = analyse(frames);
  EXPECT_EQ(got.operations(), "Send");
  EXPECT_EQ(got.rules(), "");
}

TEST(Reassembly, KeepsTheFirstOctetsOfAnOverlapAndSaysSo) {
  for (const bool waits : {false, true}) {
    SCOPED_TRACE(waits);
    talk t;
    const octets fpdu = t.client(send(1, counted(400)));
    const octets wrong(200, std::byte{0xFF});
    const auto part = [&](std::size_t from, std::size_t to) {
      return octets(fpdu.begin() + static_cast<std::ptrdiff_t>(from), fpdu.begin() + static_cast<std::ptrdiff_t>(to));
    };
    if (waits) {
      // 100..300 came before 0..100; then 0..200 with other octets in 100..200.
      t.tcp.raw(side::client, 100, part(100, 300));
      t.tcp.raw(side::client, 0, part(0, 100) + octets(100, std::byte{0xFF}));
    } else {
      t.tcp.raw(side::client, 0, part(0, 300));
      t.tcp.raw(side::client, 100, wrong);
    }
    t.tcp.raw(side::client, 300, part(300, fpdu.size()));
    const collected got = analyse(t.tcp.frames);
    EXPECT_EQ(got.operations(), "Send");
    ASSERT_EQ(got.payloads.size(), 1u);
    EXPECT_EQ(got.payloads[0], counted(400));
    EXPECT_EQ(got.rules(), "TCP");
    EXPECT_EQ(got.summary.crc_bad, 0u);
  }
}

TEST(Reassembly, NoOverlapIsSaidOfEqualOctets) {
  talk t;
  const octets fpdu = t.client(send(1, counted(400)));
  t.tcp.raw(side::client, 0, octets(fpdu.begin(), fpdu.begin() + 300));
  t.tcp.raw(side::client, 100, octets(fpdu.begin() + 100, fpdu.end()));
  t.tcp.raw(side::client, -1, octets(1, std::byte{0x55}));  // a keep-alive's octet may be anything
  const collected got = analyse(t.tcp.frames);
  EXPECT_EQ(got.operations(), "Send");
  EXPECT_EQ(got.rules(), "");
}

TEST(Reassembly, FindsAHoleBeforeTheEndOfTheCaptureByTheAcknowledgement) {
  talk t;
  t.say(side::client, send(1, counted(100)));
  const std::size_t lost = t.client(send(2, counted(100))).size();
  t.tcp.lose(side::client, lost);
  t.say(side::client, send(3, counted(100)));
  for (std::uint32_t i = 1; i <= 200; ++i) t.say(side::server, send(i, counted(20)));
  collected got;
  dump::analyser analyser({}, got);
  std::uint64_t n = 0;
  for (const frame& f : t.tcp.frames) {
    analyser.add({.frame = {.number = ++n, .time = f.time}, .octets = f.data, .length = f.length, .link_type = 1});
  }
  EXPECT_EQ(got.rules(), "TCP");
  EXPECT_EQ(got.summary.frames, 0u);  // not the end
  analyser.finish();
  EXPECT_EQ(got.summary.lost_octets, lost);
  EXPECT_EQ(got.summary.messages, 202u);
  // It is told where it is: at the frame behind it.
  EXPECT_EQ(got.problems[0].at.frame.number, 7u);
  EXPECT_EQ(got.problems[0].at.offset, got.fpdus[1].at.offset - lost);
}

// What the capture lacks is nobody's fault: neither too many Reads nor unasked or missing responses are said of it, and
// those that are there are matched.
TEST(Reassembly, ReadsAcrossAHole) {
  for (const side lost : {side::client, side::server}) {
    SCOPED_TRACE(lost == side::client ? "requests lost" : "responses lost");
    startup two;
    two.enhanced = mpa::enhanced_data{.ird = 2, .ord = 2};
    talk t(two, two);
    for (std::uint32_t i = 1; i <= 20; ++i) {
      const octets asked =
          t.client(read_request(i, {.sink = {9}, .sink_offset = 0x100 * i, .size = 40, .source = {3}}));
      const octets given = t.server(read_response(9, 0x100 * i, counted(40)));
      const bool gap = i == 5 || i == 6 || i == 11;
      if (gap && lost == side::client) {
        t.tcp.lose(side::client, asked.size());
      } else {
        t.tcp.say(side::client, asked);
      }
      if (gap && lost == side::server) {
        t.tcp.lose(side::server, given.size());
      } else {
        t.tcp.say(side::server, given);
      }
    }
    t.tcp.close();
    const collected got = analyse(t.tcp.frames);
    EXPECT_EQ(got.rules(), "TCP TCP");
    std::size_t matched = 0;
    for (const auto& m : got.messages) {
      if (const auto* a = std::get_if<dump::answer>(&m.detail)) matched += a->request.has_value() ? 1 : 0;
    }
    EXPECT_EQ(matched, 17u);
  }
}

TEST(Reassembly, WaitsForWhatAnAnswerSaysItHasSeen) {
  // The request's frame comes two frames behind its response.
  talk t;
  t.say(side::client, read_request(1, {.sink = {1}, .sink_offset = 2, .size = 10, .source = {3}, .source_offset = 4}));
  t.say(side::server, read_response(1, 2, counted(10)));
  t.say(side::server, send(1, counted(10)));
  std::vector<frame> frames = t.tcp.frames;
  std::rotate(frames.end() - 3, frames.end() - 2, frames.end());
  const collected got = analyse(frames);
  EXPECT_EQ(got.operations(), "ReadReq ReadResp Send");
  EXPECT_EQ(got.rules(), "");
  EXPECT_EQ(std::get<dump::answer>(got.messages[1].detail).request, got.messages[0].number);
}

TEST(Reassembly, MadeUpAcknowledgementsHoldNothingBack) {
  // Recorders that invent TCP headers may leave acknowledgement numbers at anything.
  for (const std::uint32_t acknowledged : {0u, 1u, 123456789u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(acknowledged);
    talk t;
    for (std::uint32_t i = 1; i <= 100; ++i) {
      t.say(side::client, send(i, counted(50)));
      t.say(side::server, send(i, counted(50)));
    }
    std::vector<frame> frames = t.tcp.frames;
    for (frame& f : frames) store_be(std::span(f.data).subspan(14 + 20 + 8).first<4>(), acknowledged);
    const collected got = analyse(frames);
    EXPECT_EQ(got.summary.messages, 200u);
    EXPECT_EQ(got.rules(), "");
  }
}

TEST(Reassembly, OneDirectionAlone) {
  talk t;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    t.say(side::client, send(i, counted(500)));
    t.say(side::server, write(i, 0, counted(500)));
  }
  std::vector<frame> frames;
  for (const frame& f : t.tcp.frames) {
    if (f.data[29] == std::byte{2}) frames.push_back(f);  // from the server
  }
  const collected got = analyse(frames);
  EXPECT_EQ(got.summary.messages, 10u);
  EXPECT_EQ(got.rules(), "");
}

TEST(Reassembly, AResetEndsBothDirections) {
  one_send s;
  s.t.tcp.reset(side::server);
  const collected got = analyse(s.t.tcp.frames);
  EXPECT_EQ(got.operations(), "Send");
  EXPECT_EQ(got.rules(), "");
}

TEST(Reassembly, TcpThatEndsInsideAnFpduIsSaid) {
  talk t;
  octets fpdu = t.client(send(1, counted(400)));
  fpdu.resize(200);
  t.tcp.say(side::client, fpdu);
  t.tcp.close();
  const collected got = analyse(t.tcp.frames);
  EXPECT_EQ(got.rules(), "MPA-80");
}

// The same connection cut, doubled and shuffled at random gives the same FPDUs, messages and problems.
TEST(Reassembly, CutAndShuffled) {
  for (const bool markers : {false, true}) {
    startup s;
    s.markers = markers;
    std::vector<octets> said[2];
    std::vector<std::string> expected;
    {
      talk t(s, s);
      for (std::uint32_t i = 1; i <= 12; ++i) {
        t.say(side::client, send(i, counted(97 * i)));
        t.say(side::server, write(i, i, counted(131 * i)));
        t.say(side::client, read_request(i, {.sink = {9}, .sink_offset = i, .size = 40 * i, .source = {3}}));
        t.say(side::server, read_response(9, i, counted(40 * i)));
      }
      t.tcp.close();
      expected = analyse(t.tcp.frames).lines();
      ASSERT_EQ(expected.size(), 98u);
    }
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " markers " << markers);
      test_support::random_source random(seed);
      talk t(s, s, {.client_isn = 0xFFFFF000u, .server_isn = static_cast<std::uint32_t>(random())});
      const auto cut = [&](side from, const octets& data) {
        for (std::size_t at = 0; at < data.size();) {
          const std::size_t size = std::min<std::size_t>(random.between(1, 700), data.size() - at);
          const auto begin = data.begin() + static_cast<std::ptrdiff_t>(at);
          t.tcp.segment(from, octets(begin, begin + static_cast<std::ptrdiff_t>(size)));
          at += size;
        }
      };
      for (std::uint32_t i = 1; i <= 12; ++i) {
        cut(side::client, t.client(send(i, counted(97 * i))));
        cut(side::server, t.server(write(i, i, counted(131 * i))));
        cut(side::client, t.client(read_request(i, {.sink = {9}, .sink_offset = i, .size = 40 * i, .source = {3}})));
        cut(side::server, t.server(read_response(9, i, counted(40 * i))));
      }
      t.tcp.close();
      std::vector<frame> frames;
      for (const frame& f : t.tcp.frames) {
        frames.push_back(f);
        if (random.below(6) == 0) frames.push_back(t.tcp.frames[random.below(t.tcp.frames.size())]);
      }
      // Frames change places over a short distance, as they do in captures; the first must stay the first.
      for (std::size_t i = 1; i + 8 < frames.size(); ++i) {
        if (random.below(3) == 0) std::swap(frames[i], frames[i + random.between(1, 7)]);
      }
      const auto lines = analyse(frames).lines();
      for (std::size_t i = 0; i != std::max(lines.size(), expected.size()); ++i) {
        ASSERT_EQ(i < lines.size() ? lines[i] : "nothing", i < expected.size() ? expected[i] : "nothing") << i;
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::dump_test
