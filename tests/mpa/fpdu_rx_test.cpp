#include "mpa/fpdu_rx.hpp"

#include "mpa/error.hpp"
#include "tests/mpa/streams.hpp"
#include "tests/mpa/vectors.hpp"

#include <gtest/gtest.h>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::delivery;
using test::error_of;
using test::from_hex;
using test::noting_sink;
using test::octets;
using test::scribble;
using test::slow_stream;

/// A receiver with its memory and sink.
class receiver {
 public:
  explicit receiver(bool crc = true, bool markers = false, std::uint64_t position = 0) {
    rx.start(crc, markers, position);
  }
  explicit receiver(const slow_stream& s) : receiver(s.crc(), s.markers(), s.start()) {}

  rx_memory memory;
  noting_sink sink;
  fpdu_rx rx{memory, sink};
};

// Vectors -------------------------------------------------------------------------------------------------------------

class FpduVectorsRx : public testing::TestWithParam<test::fpdu_vector> {};

// MPA-01 MPA-07 MPA-10 MPA-28 MPA-42 MPA-44
TEST_P(FpduVectorsRx, AreHandedUpOnceTheyAreWhole) {
  const test::fpdu_vector& v = GetParam();
  const octets wire = v.wire();
  receiver r(v.crc);
  for (std::size_t i = 0; i + 1 < wire.size(); ++i) {
    ASSERT_EQ(r.rx.consume(const_bytes{wire}.subspan(i, 1)), 1u);
    ASSERT_TRUE(r.sink.got.empty()) << "handed up after " << i + 1 << " octets";
    ASSERT_TRUE(r.rx.mid_fpdu());
  }
  ASSERT_EQ(r.rx.consume(const_bytes{wire}.last(1)), 1u);
  EXPECT_EQ(r.sink.got, (std::vector<delivery>{{v.ulpdu(), 0}}));
  EXPECT_TRUE(r.sink.head_is_good);
  EXPECT_FALSE(r.rx.mid_fpdu());
  EXPECT_EQ(r.rx.counters().fpdus, 1u);
  EXPECT_EQ(r.rx.counters().octets, wire.size());
}

// MPA-36 MPA-43: whatever bit is wrong, nothing is passed up; a longer ULPDU_Length may leave the receiver waiting.
TEST_P(FpduVectorsRx, EveryFlippedBitIsCaught) {
  const test::fpdu_vector& v = GetParam();
  const octets wire = v.wire();
  if (!v.crc) {  // nothing protects this one, and its CRC field says nothing (MPA-14)
    receiver r(false);
    ASSERT_EQ(r.rx.consume(const_bytes{wire}.first(wire.size() - 4)), wire.size() - 4);
    ASSERT_EQ(r.rx.consume(octets(4, std::byte{0xFF})), 4u);
    ASSERT_EQ(r.sink.got.size(), 1u);
    return;
  }
  for (std::size_t bit = 0; bit < wire.size() * 8; ++bit) {
    octets bad = wire;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    receiver r;
    const auto taken = r.rx.consume(bad);
    ASSERT_TRUE(r.sink.got.empty()) << "bit " << bit;
    if (taken) {
      ASSERT_LT(bit / 8, 2u) << "bit " << bit << " went unnoticed";
      ASSERT_TRUE(r.rx.mid_fpdu());
      // However long it now claims to be: once that much is here, it is found out.
      const auto rest = r.rx.consume(octets(rx_memory::max_fpdu));
      ASSERT_FALSE(rest);
      ASSERT_EQ(rest.error(), errc::crc_mismatch);
      ASSERT_TRUE(r.sink.got.empty());
    } else {
      ASSERT_EQ(taken.error(), errc::crc_mismatch) << "bit " << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AppendixA2, FpduVectorsRx, testing::ValuesIn(test::fpdu_vectors()),
                         [](const auto& p) { return p.param.name; });

class MarkerVectorsRx : public testing::TestWithParam<test::marker_vector> {
 protected:
  slow_stream stream() const {
    slow_stream s(true, true, GetParam().position);
    for (const octets& ulpdu : GetParam().ulpdus) s.add(ulpdu);
    for (const test::placed_octets& p : GetParam().wire) {
      std::ranges::copy(p.octets, s.wire.begin() + static_cast<std::ptrdiff_t>(p.at));
    }
    return s;
  }
};

// MPA-21 MPA-23 MPA-24 MPA-25 MPA-26 MPA-27 MPA-28 MPA-29
TEST_P(MarkerVectorsRx, AreHandedUpWithoutMarkers) {
  const slow_stream s = stream();
  ASSERT_EQ(s.wire.size(), GetParam().size);
  receiver r(s);
  ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
  EXPECT_EQ(r.sink.got, s.expected);
  EXPECT_TRUE(r.sink.head_is_good);
  EXPECT_FALSE(r.rx.mid_fpdu());
}

// MPA-25 MPA-36: also the bits of markers are covered by the CRC, and it is checked before the pointers.
TEST_P(MarkerVectorsRx, EveryFlippedBitIsCaught) {
  const slow_stream s = stream();
  for (std::size_t bit = 0; bit < s.wire.size() * 8; ++bit) {
    octets bad = s.wire;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    std::size_t index = 0;
    while (s.fpdus[index].end <= bit / 8) ++index;
    receiver r(s);
    const auto taken = r.rx.consume(bad);
    ASSERT_EQ(r.sink.got, std::vector<delivery>(s.expected.begin(), s.expected.begin() + static_cast<long>(index)));
    if (taken) {
      ASSERT_GE(bit / 8, s.fpdus[index].length_field) << "bit " << bit << " went unnoticed";
      ASSERT_LT(bit / 8, s.fpdus[index].length_field + 2) << "bit " << bit << " went unnoticed";
      ASSERT_TRUE(r.rx.mid_fpdu());
    } else {
      ASSERT_EQ(taken.error(), errc::crc_mismatch) << "bit " << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AppendixA4, MarkerVectorsRx, testing::ValuesIn(test::marker_vectors()),
                         [](const auto& p) { return p.param.name; });

// PAD and CRC
// -----------------------------------------------------------------------------------------------------------

// MPA-12
TEST(FpduRx, PadThatIsNotZeroIsAcceptedWithItsCrc) {
  slow_stream s(true, false);
  for (std::size_t size = 15; size < 19; ++size) s.add(counting(size), std::byte{0xA7});
  receiver r(s);
  ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
  EXPECT_EQ(r.sink.got, s.expected);
}

// MPA-14 MPA-34
TEST(FpduRx, WithCrcOffTheFieldMayHoldAnything) {
  for (const bool markers : {false, true}) {
    slow_stream s(false, markers);
    for (std::size_t size = 10; size < 900; size += 50) {
      s.add(counting(size));
      for (std::size_t i = s.fpdus.back().crc_field; i < s.fpdus.back().end; ++i) s.wire[i] = std::byte{0x5A};
    }
    receiver r(s);
    ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
    EXPECT_EQ(r.sink.got, s.expected);
  }
}

// MPA-33 MPA-36 MPA-75 MPA-78
TEST(FpduRx, AfterABadCrcNothingIsDeliveredAndTheErrorStays) {
  slow_stream s(true, false);
  for (std::size_t i = 0; i < 5; ++i) s.add(counting(50, i));
  s.wire[s.fpdus[2].crc_field] ^= std::byte{1};
  receiver r(s);
  const auto taken = r.rx.consume(s.wire);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error(), errc::crc_mismatch);
  EXPECT_EQ(r.sink.got, std::vector<delivery>(s.expected.begin(), s.expected.begin() + 2));
  EXPECT_EQ(error_of(r.rx.consume(s.wire)), errc::crc_mismatch);
  EXPECT_EQ(error_of(r.rx.commit(0)), errc::crc_mismatch);
  EXPECT_EQ(error_of(r.rx.resume()), errc::crc_mismatch);
  EXPECT_TRUE(r.rx.window().empty());
  EXPECT_EQ(r.sink.offers, 2u);
}

// MPA-78
TEST(FpduRx, AfterAnErrorOfTheSinkNothingMoreIsOffered) {
  slow_stream s(true, false);
  for (std::size_t i = 0; i < 5; ++i) s.add(counting(50, i));
  receiver r(s);
  r.sink.answer = [&](const ulpdu&) -> result<ulpdu_answer> {
    if (r.sink.got.size() == 3) return fail(std::make_error_code(std::errc::no_message));
    return ulpdu_answer::taken;
  };
  EXPECT_EQ(error_of(r.rx.consume(s.wire)), std::errc::no_message);
  EXPECT_EQ(error_of(r.rx.consume(s.wire)), std::errc::no_message);
  EXPECT_EQ(r.sink.offers, 4u);
  EXPECT_EQ(r.rx.counters().fpdus, 3u);
}

// Markers
// ---------------------------------------------------------------------------------------------------------------

/// A stream with markers in every kind of place, and where each marker is.
struct marked_stream {
  slow_stream stream{true, true};
  std::vector<std::size_t> markers;

  marked_stream() {
    stream.add(counting(502));  // to 512: the next marker lies between two FPDUs
    stream.add(counting(1400));
    while (stream.wire.size() % 512 != 8) stream.add(counting(2));
    stream.add(counting(502));  // its 504 octets before the CRC end where a marker is due
    stream.add(counting(3000));
    for (std::size_t at = 0; at < stream.wire.size(); at += 512) markers.push_back(at);
  }
  [[nodiscard]] std::size_t fpdu_of(std::size_t at) const {
    std::size_t index = 0;
    while (stream.fpdus[index].end <= at) ++index;
    return index;
  }
};

TEST(FpduRx, TheMarkedStreamHasMarkersInEveryKindOfPlace) {
  const marked_stream m;
  bool between = false, before_crc = false, inside = false;
  for (const std::size_t at : m.markers) {
    const test::extent_of_fpdu& f = m.stream.fpdus[m.fpdu_of(at)];
    if (at == f.begin) {
      between = true;
    } else if (at + 4 == f.crc_field) {
      before_crc = true;
    } else {
      inside = true;
    }
  }
  EXPECT_TRUE(between && before_crc && inside);
}

// MPA-16 MPA-76: a pointer that disagrees, under a CRC that is right.
TEST(FpduRx, AMarkerThatPointsElsewhereIsFoundBehindAGoodCrc) {
  const marked_stream m;
  for (const std::size_t at : m.markers) {
    const std::size_t index = m.fpdu_of(at);
    for (unsigned bit = 2; bit < 16; ++bit) {
      slow_stream s = m.stream;
      s.wire[at + 2 + (bit < 8 ? 1 : 0)] ^= static_cast<std::byte>(1u << (bit % 8));
      receiver without_repair(s);
      ASSERT_EQ(error_of(without_repair.rx.consume(s.wire)), errc::crc_mismatch);
      s.repair(index);
      receiver r(s);
      ASSERT_EQ(error_of(r.rx.consume(s.wire)), errc::marker_mismatch) << "marker at " << at << ", bit " << bit;
      ASSERT_EQ(r.sink.got.size(), index);
    }
  }
}

// MPA-76: also without a CRC.
TEST(FpduRx, AMarkerThatPointsElsewhereIsFoundWithCrcOff) {
  const marked_stream m;
  for (const std::size_t at : m.markers) {
    octets bad = m.stream.wire;
    bad[at + 3] ^= std::byte{4};
    receiver r(false, true);
    ASSERT_EQ(error_of(r.rx.consume(bad)), errc::marker_mismatch);
    ASSERT_EQ(r.sink.got.size(), m.fpdu_of(at));
  }
}

// MPA-15 MPA-16
TEST(FpduRx, ReservedHalfAndLowBitsOfAMarkerAreIgnoredButCovered) {
  marked_stream m;
  for (const std::size_t at : m.markers) {
    m.stream.wire[at] = std::byte{0xDE};
    m.stream.wire[at + 1] = std::byte{0xAD};
    m.stream.wire[at + 3] |= std::byte{3};
  }
  receiver without_repair(m.stream);
  EXPECT_EQ(error_of(without_repair.rx.consume(m.stream.wire)), errc::crc_mismatch);
  for (std::size_t i = 0; i < m.stream.fpdus.size(); ++i) m.stream.repair(i);
  receiver r(m.stream);
  ASSERT_EQ(r.rx.consume(m.stream.wire), m.stream.wire.size());
  EXPECT_EQ(r.sink.got, m.stream.expected);
}

// MPA-22
TEST(FpduRx, MarkerPhaseHoldsAcrossFourGigabytes) {
  for (const std::uint64_t position : {std::uint64_t{0xFFFFFF00}, std::uint64_t{0x100000000}, std::uint64_t{1} << 40}) {
    slow_stream s(true, true, position);
    for (std::size_t i = 0; i < 30; ++i) s.add(counting(150 + i));
    receiver r(s);
    ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
    EXPECT_EQ(r.sink.got, s.expected);
  }
}

// Sizes ---------------------------------------------------------------------------------------------------------------

// MPA-07 MPA-42: every length the field can say is taken, 0 and beyond 64768 included.
TEST(FpduRx, TakesEveryLengthTheFieldCanSay) {
  for (const bool markers : {false, true}) {
    slow_stream s(true, markers);
    for (const std::size_t size : {0u, 1u, 65535u, 64768u, 0u, 65534u, 65533u, 65532u, 2u, 65531u})
      s.add(counting(size));
    receiver r(s);
    ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
    EXPECT_TRUE(r.sink.got == s.expected);
    EXPECT_TRUE(r.sink.head_is_good);
    EXPECT_EQ(r.rx.counters().fpdus, s.fpdus.size());
    EXPECT_EQ(r.rx.counters().octets, s.wire.size());
  }
}

// The end of the stream -----------------------------------------------------------------------------------------------

TEST(FpduRx, KnowsWhetherItIsInsideAnFpduAtEveryOctet) {
  for (const bool markers : {false, true}) {
    slow_stream s(true, markers);
    for (const std::size_t size : {502u, 20u, 506u, 0u, 33u}) s.add(counting(size));
    for (std::size_t n = 0; n <= s.wire.size(); ++n) {
      receiver r(s);
      ASSERT_EQ(r.rx.consume(const_bytes{s.wire}.first(n)), n);
      const bool at_end = n == 0 || std::ranges::any_of(s.fpdus, [n](const auto& f) { return f.end == n; });
      ASSERT_EQ(r.rx.mid_fpdu(), !at_end) << n;
    }
  }
}

TEST(FpduRx, WhileHeldItKnowsWhetherTheLastOctetEndsAnFpdu) {
  slow_stream s(true, true);
  for (const std::size_t size : {502u, 20u, 506u, 0u, 33u}) s.add(counting(size));
  for (std::size_t n = s.fpdus[0].end; n <= s.wire.size(); ++n) {
    receiver r(s);
    r.sink.answer = [](const ulpdu&) { return ulpdu_answer::held; };
    ASSERT_EQ(r.rx.consume(const_bytes{s.wire}.first(n)), n);
    const bool at_end = std::ranges::any_of(s.fpdus, [n](const auto& f) { return f.end == n; });
    ASSERT_EQ(r.rx.mid_fpdu(), !at_end) << n;
  }
}

// Windows -------------------------------------------------------------------------------------------------------------

TEST(FpduRx, TheWindowIsNeverEmptyWhileRunningAndStaysTheSameUntilFilled) {
  receiver r;
  const mutable_bytes first = r.rx.window();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(r.rx.window().data(), first.data());
  EXPECT_EQ(r.rx.commit(0), fpdu_rx::status::running);
  EXPECT_EQ(r.rx.window().data(), first.data());
}

// A bulk transfer: once the size of FPDUs is known, a read that fills the window leaves nothing unfinished.
TEST(FpduRx, ReadsOfABulkTransferEndWithAnFpdu) {
  slow_stream s(false, false);
  for (int i = 0; i < 120; ++i) s.add(octets(16384));
  receiver r(s);
  std::size_t fed = 0, reads = 0;
  while (fed != s.wire.size()) {
    const mutable_bytes window = r.rx.window();
    const std::size_t n = std::min(window.size(), s.wire.size() - fed);
    std::copy_n(s.wire.begin() + static_cast<std::ptrdiff_t>(fed), n, window.begin());
    ASSERT_EQ(r.rx.commit(n), fpdu_rx::status::running);
    fed += n;
    ++reads;
    ASSERT_GE(window.size(), rx_memory::read_size / 2);
    if (reads > 1) {
      ASSERT_FALSE(r.rx.mid_fpdu()) << "read " << reads;
    }
  }
  EXPECT_EQ(r.sink.got.size(), 120u);
}

TEST(FpduRx, NothingOfAConnectionStaysInTheSharedBufferAfterPark) {
  slow_stream s(true, false);
  s.add(counting(300));
  receiver one(s);
  noting_sink other_sink;
  fpdu_rx other(one.memory, other_sink);
  other.start(true, false);
  for (std::size_t i = 0; i < s.wire.size(); i += 7) {
    const const_bytes piece = const_bytes{s.wire}.subspan(i, std::min<std::size_t>(7, s.wire.size() - i));
    ASSERT_EQ(one.rx.consume(piece), piece.size());
    scribble(one.memory);
    ASSERT_EQ(other.consume(piece), piece.size());
    scribble(one.memory);
  }
  EXPECT_EQ(one.sink.got, s.expected);
  EXPECT_EQ(other_sink.got, s.expected);
}

// VRB-02: start() forgets everything of the stream before.
TEST(FpduRx, StartBeginsANewStream) {
  slow_stream s(true, true);
  s.add(counting(300));
  receiver r(s);
  ASSERT_EQ(r.rx.consume(const_bytes{s.wire}.first(100)), 100u);
  r.rx.start(true, true);
  EXPECT_FALSE(r.rx.mid_fpdu());
  ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
  EXPECT_EQ(r.sink.got, s.expected);
  EXPECT_EQ(r.rx.counters().fpdus, 1u);
}

// Holding -------------------------------------------------------------------------------------------------------------

TEST(FpduRx, WhileHeldItTakesNothingMoreAndOffersTheSameAgain) {
  slow_stream s(true, false);
  for (std::size_t i = 0; i < 4; ++i) s.add(counting(50, i));
  receiver r(s);
  bool hold = true;
  r.sink.answer = [&](const ulpdu&) { return hold ? ulpdu_answer::held : ulpdu_answer::taken; };
  EXPECT_EQ(r.rx.resume(), fpdu_rx::status::running) << "nothing is held yet";
  ASSERT_EQ(r.rx.consume(s.wire), s.wire.size()) << "one window took it all";
  EXPECT_TRUE(r.rx.window().empty());
  EXPECT_EQ(r.rx.commit(0), fpdu_rx::status::held);
  EXPECT_EQ(r.rx.consume(s.wire), 0u);
  scribble(r.memory);
  EXPECT_EQ(r.rx.resume(), fpdu_rx::status::held);
  EXPECT_EQ(r.sink.offers, 2u);
  r.rx.park();
  hold = false;
  EXPECT_EQ(r.rx.resume(), fpdu_rx::status::running);
  EXPECT_EQ(r.sink.got, s.expected);
  r.rx.park();
  EXPECT_EQ(r.rx.consume(s.wire), s.wire.size());
  EXPECT_EQ(r.sink.got.size(), 8u);
}

TEST(FpduRx, AHeldStreamOfAFullReadIsKept) {
  slow_stream s(true, false);
  while (s.wire.size() < 4 * rx_memory::read_size) s.add(counting(65000, s.wire.size()));
  receiver r(s);
  bool hold = true;
  r.sink.answer = [&](const ulpdu&) { return hold ? ulpdu_answer::held : ulpdu_answer::taken; };
  auto taken = r.rx.consume(s.wire);
  ASSERT_TRUE(taken);
  ASSERT_GE(*taken, 65000u);
  ASSERT_LE(*taken, rx_memory::staging_size);
  std::ranges::fill(r.memory.staging(), std::byte{0xEE});
  hold = false;
  std::size_t fed = *taken;
  ASSERT_EQ(r.rx.resume(), fpdu_rx::status::running);
  r.rx.park();
  taken = r.rx.consume(const_bytes{s.wire}.subspan(fed));
  ASSERT_TRUE(taken);
  EXPECT_EQ(fed + *taken, s.wire.size());
  EXPECT_TRUE(r.sink.got == s.expected);
}

// A stream that was held gives its large buffer back as soon as little is left to keep.
TEST(FpduRx, AStreamThatIsNoLongerHeldKeepsASmallBuffer) {
  slow_stream s(false, false);
  while (s.wire.size() < rx_memory::read_size) s.add(counting(30000));
  receiver r(s);
  bool hold = true;
  r.sink.answer = [&](const ulpdu&) { return hold ? ulpdu_answer::held : ulpdu_answer::taken; };
  ASSERT_EQ(r.rx.consume(const_bytes{s.wire}.first(200000)), 200000u);
  rx_memory::carry small = r.memory.take(1);
  const std::byte* const address = small.data.get();
  r.memory.give_back(std::move(small));
  hold = false;
  ASSERT_EQ(r.rx.resume(), fpdu_rx::status::running);
  r.rx.park();
  ASSERT_TRUE(r.rx.mid_fpdu());
  EXPECT_NE(r.memory.take(1).data.get(), address) << "the small buffer is in use now";
  ASSERT_EQ(r.rx.consume(const_bytes{s.wire}.subspan(200000)), s.wire.size() - 200000);
  EXPECT_TRUE(r.sink.got == s.expected);
}

// MPA-36: what lies behind a held FPDU is verified when its turn comes.
TEST(FpduRx, ABadFpduBehindAHeldOneIsFoundOnResume) {
  slow_stream s(true, false);
  for (std::size_t i = 0; i < 3; ++i) s.add(counting(50, i));
  s.wire[s.fpdus[1].length_field + 9] ^= std::byte{0x10};
  receiver r(s);
  bool hold = true;
  r.sink.answer = [&](const ulpdu&) { return hold ? ulpdu_answer::held : ulpdu_answer::taken; };
  ASSERT_EQ(r.rx.consume(s.wire), s.wire.size());
  hold = false;
  EXPECT_EQ(error_of(r.rx.resume()), errc::crc_mismatch);
  EXPECT_EQ(r.sink.got.size(), 1u);
}

}  // namespace
}  // namespace iwarp::mpa
