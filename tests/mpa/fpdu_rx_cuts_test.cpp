// Receiving is the same whatever the cuts of the stream: MPA-41, MPA-42, MPA-44.
#include "mpa/fpdu_rx.hpp"
#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::noting_sink;
using test::octets;
using test::random_source;
using test::scribble;
using test::slow_stream;

/// Ways in which a stream reaches the receiver.
enum class form {
  consume,         ///< pushed
  window_park,     ///< window and commit, park after each piece
  window_no_park,  ///< window and commit, all in one turn
};

struct stream_case {
  std::string name;
  bool crc, markers;
  std::vector<std::size_t> sizes;
};
void PrintTo(const stream_case& c, std::ostream* out) { *out << c.name; }

slow_stream build(const stream_case& c) {
  slow_stream s(c.crc, c.markers);
  for (const std::size_t size : c.sizes) s.add(counting(size, size * 7));
  return s;
}

/// Holds every ULPDU `times` times before taking it.
class holding_sink : public noting_sink {
 public:
  explicit holding_sink(unsigned times) {
    if (times == 0) return;
    answer = [this, times, held = 0u](const ulpdu&) mutable -> result<ulpdu_answer> {
      if (held++ == times) {
        held = 0;
        return ulpdu_answer::taken;
      }
      ++holds;
      return ulpdu_answer::held;
    };
  }
  std::size_t holds = 0;
};

/// Feeds `wire` in pieces whose sizes `next` says, resuming whenever the sink holds; the shared staging buffer is
/// overwritten whenever another connection might use it. False when the receiver reports an error.
bool feed(fpdu_rx& rx, rx_memory& memory, const_bytes wire, form how, const std::function<std::size_t()>& next) {
  while (!wire.empty()) {
    const_bytes piece = wire.first(std::min(wire.size(), next()));
    wire = wire.subspan(piece.size());
    while (!piece.empty()) {
      if (how == form::consume) {
        const auto taken = rx.consume(piece);
        if (!taken) return false;
        piece = piece.subspan(*taken);
        scribble(memory);
      } else {
        const mutable_bytes window = rx.window();
        const std::size_t n = std::min(window.size(), piece.size());
        std::copy_n(piece.begin(), n, window.begin());
        const auto now = rx.commit(n);
        if (!now) return false;
        piece = piece.subspan(n);
        if (how == form::window_park) {
          rx.park();
          scribble(memory);
        }
      }
      while (true) {
        const auto now = rx.resume();
        if (!now) return false;
        if (*now == fpdu_rx::status::running) break;
        if (how == form::window_park) {
          rx.park();
          scribble(memory);
        }
      }
    }
  }
  rx.park();
  return true;
}

void expect_the_same(const slow_stream& s, form how, unsigned holds, const std::function<std::size_t()>& next) {
  rx_memory memory;
  holding_sink sink(holds);
  fpdu_rx rx(memory, sink);
  rx.start(s.crc(), s.markers());
  ASSERT_TRUE(feed(rx, memory, s.wire, how, next));
  ASSERT_TRUE(sink.got == s.expected);
  ASSERT_TRUE(sink.head_is_good);
  ASSERT_FALSE(rx.mid_fpdu());
  ASSERT_EQ(rx.counters().fpdus, s.fpdus.size());
  ASSERT_EQ(rx.counters().octets, s.wire.size());
  ASSERT_EQ(sink.holds, holds * s.fpdus.size());
}

class Cuts : public testing::TestWithParam<std::tuple<stream_case, form>> {};

TEST_P(Cuts, OneCutAnywhere) {
  const auto& [c, how] = GetParam();
  const slow_stream s = build(c);
  rx_memory memory;
  for (std::size_t cut = 0; cut <= s.wire.size(); ++cut) {
    for (const unsigned holds : {0u, 2u}) {
      holding_sink sink(holds);
      fpdu_rx rx(memory, sink);
      rx.start(s.crc(), s.markers());
      std::size_t pieces = 0;
      const std::size_t first = std::max<std::size_t>(cut, 1);
      ASSERT_TRUE(feed(rx, memory, s.wire, how, [&] { return pieces++ == 0 ? first : s.wire.size(); })) << cut;
      ASSERT_EQ(sink.got, s.expected) << cut;
      ASSERT_TRUE(sink.head_is_good);
    }
  }
}

TEST_P(Cuts, OneOctetAtATime) {
  const auto& [c, how] = GetParam();
  const slow_stream s = build(c);
  for (const unsigned holds : {0u, 1u}) expect_the_same(s, how, holds, [] { return 1; });
}

TEST_P(Cuts, RandomPieces) {
  const auto& [c, how] = GetParam();
  const slow_stream s = build(c);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    random_source random(seed);
    expect_the_same(s, how, seed % 3 == 0 ? 1 : 0, [&] { return random.between(1, 1 + seed * 20); });
  }
}

std::string cut_name(const testing::TestParamInfo<Cuts::ParamType>& p) {
  const auto& [c, how] = p.param;
  switch (how) {
    case form::consume:
      return c.name + "Consume";
    case form::window_park:
      return c.name + "WindowPark";
    case form::window_no_park:
      return c.name + "WindowNoPark";
  }
  return c.name;
}

INSTANTIATE_TEST_SUITE_P(
    Streams, Cuts,
    testing::Combine(testing::Values(stream_case{"Small", true, false, {14, 18, 1, 2, 3, 4, 78, 0, 46}},
                                     stream_case{"SmallMarkers", true, true, {14, 18, 1, 2, 3, 4, 78, 0, 46, 300, 77}},
                                     stream_case{"Bulk", true, false, {700, 700, 700, 120}},
                                     stream_case{"BulkMarkers", true, true, {502, 1400, 506, 498, 20, 494}},
                                     stream_case{"CrcOff", false, false, {23, 500, 23}},
                                     stream_case{"CrcOffMarkers", false, true, {23, 500, 23, 1100}}),
                     testing::Values(form::consume, form::window_park, form::window_no_park)),
    cut_name);

// Streams several times as long as the staging buffer: what is unfinished is moved, and windows fit around it.
TEST(LongStream, LargeFpdusOfChangingSizes) {
  for (const bool markers : {false, true}) {
    random_source random(5);
    slow_stream s(false, markers);  // the slow CRC would take the time
    while (s.wire.size() < 6 * rx_memory::staging_size) {
      s.add(counting(random.chance(50) ? random.between(60000, 65535) : random.between(1, 3000), s.wire.size()));
    }
    for (const form how : {form::consume, form::window_park, form::window_no_park}) {
      expect_the_same(s, how, 0, [] { return std::size_t{1} << 30; });
      expect_the_same(s, how, 1, [&] { return random.between(1, 400000); });
      expect_the_same(s, how, 0, [&] { return random.between(1, 40000); });
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
