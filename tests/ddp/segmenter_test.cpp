// The data source of DDP: every segment of many messages, and the arithmetic at its edges.
#include "ddp/segmenter.hpp"

#include "mpa/mulpdu.hpp"
#include "tests/ddp/segments.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace iwarp::ddp {
namespace {

using test::concat;
using test::from_hex;
using test::octets;
using test::pattern;

tagged_header tagged_of(const segment& s) {
  EXPECT_EQ(s.header_size, tagged_header_size);
  const auto header = tagged_header::parse(std::span(s.header).first(s.header_size));
  EXPECT_TRUE(header);
  return header.value_or(tagged_header{});
}

untagged_header untagged_of(const segment& s) {
  EXPECT_EQ(s.header_size, untagged_header_size);
  const auto header = untagged_header::parse(std::span(s.header).first(s.header_size));
  EXPECT_TRUE(header);
  return header.value_or(untagged_header{});
}

octets ulpdu_of(const segment& s, const_bytes message) {
  return concat({std::span(s.header).first(s.header_size), message.subspan(s.payload_offset, s.payload_size)});
}

/// Cuts a whole message and compares each segment with what RFC 5041 s5.2 says, computed here by plain counting.
void check_tagged_message(std::uint32_t size, std::uint32_t mulpdu) {
  const tagged_header first{.ulp_control = 0x42, .stag = {0xA1B2C3D4}, .offset = 0xFFFF0000};
  segmenter cutter;
  cutter.begin(first, size);
  std::uint32_t before = 0;
  bool last = false;
  while (!last) {
    ASSERT_FALSE(cutter.done());
    const std::uint32_t room = mulpdu - static_cast<std::uint32_t>(tagged_header_size);
    const std::uint32_t want = size - before < room ? size - before : room;
    last = before + want == size;
    ASSERT_EQ(cutter.next_size(mulpdu), want);
    const segment got = cutter.next(mulpdu);
    ASSERT_EQ(got.payload_offset, before);
    ASSERT_EQ(got.payload_size, want);
    ASSERT_LE(got.header_size + got.payload_size, mulpdu);
    ASSERT_EQ(got.last, last);
    ASSERT_EQ(
        tagged_of(got),
        (tagged_header{
            .last = last, .ulp_control = first.ulp_control, .stag = first.stag, .offset = first.offset + before}));
    before += want;
  }
  ASSERT_TRUE(cutter.done());
}

void check_untagged_message(std::uint32_t size, std::uint32_t mulpdu) {
  const untagged_header first{.ulp_control = 0x44, .invalidate = {0x12345}, .queue = 0};
  segmenter cutter;
  cutter.begin(first, size);
  std::uint32_t before = 0;
  bool last = false;
  while (!last) {
    ASSERT_FALSE(cutter.done());
    const std::uint32_t room = mulpdu - static_cast<std::uint32_t>(untagged_header_size);
    const std::uint32_t want = size - before < room ? size - before : room;
    last = before + want == size;
    ASSERT_EQ(cutter.next_size(mulpdu), want);
    const segment got = cutter.next(mulpdu);
    ASSERT_EQ(got.payload_offset, before);
    ASSERT_EQ(got.payload_size, want);
    ASSERT_LE(got.header_size + got.payload_size, mulpdu);
    ASSERT_EQ(got.last, last);
    ASSERT_EQ(untagged_of(got), (untagged_header{.last = last,
                                                 .ulp_control = first.ulp_control,
                                                 .invalidate = first.invalidate,
                                                 .queue = 0,
                                                 .sequence = {1},
                                                 .offset = before}));
    before += want;
  }
  ASSERT_TRUE(cutter.done());
}

// DDP-03 DDP-06 DDP-07 DDP-09 DDP-12 DDP-14 DDP-20
TEST(Segmenter, EverySizeUnderCommonMulpdus) {
  for (const std::uint32_t mulpdu : {128u, 129u, 511u, 1442u, 1500u}) {
    for (std::uint32_t size = 0; size <= 3000; ++size) {
      check_tagged_message(size, mulpdu);
      check_untagged_message(size, mulpdu);
      if (testing::Test::HasFatalFailure()) FAIL() << size << " octets under MULPDU " << mulpdu;
    }
  }
}

// DDP-03 DDP-07 DDP-12 DDP-14: around each multiple of what fits.
TEST(Segmenter, EveryMulpduAroundWholeSegments) {
  for (std::uint32_t mulpdu = mpa::min_mulpdu; mulpdu <= 1500; ++mulpdu) {
    std::set<std::uint32_t> sizes{0, 1, 2, 2999, 3000};
    for (std::uint32_t whole = 1; whole <= 3; ++whole) {
      for (const std::uint32_t header : {14u, 18u}) {
        for (const std::uint32_t delta : {0u, 1u, 2u}) sizes.insert(whole * (mulpdu - header) - 1 + delta);
      }
    }
    for (const std::uint32_t size : sizes) {
      check_tagged_message(size, mulpdu);
      check_untagged_message(size, mulpdu);
      if (testing::Test::HasFatalFailure()) FAIL() << size << " octets under MULPDU " << mulpdu;
    }
  }
}

// DDP-07 DDP-12: the examples of RFC 5041 s5.2 scaled to MULPDU 1500.
TEST(Segmenter, ExamplesOf2048Octets) {
  segmenter cutter;
  cutter.begin(untagged_header{.ulp_control = 0x43}, 2048);
  segment s = cutter.next(1500);
  EXPECT_EQ(s.payload_size, 1482u);
  EXPECT_EQ(untagged_of(s).offset, 0u);
  s = cutter.next(1500);
  EXPECT_EQ(s.payload_size, 566u);
  EXPECT_EQ(untagged_of(s).offset, 1482u);
  EXPECT_TRUE(cutter.done());

  cutter.begin(tagged_header{.ulp_control = 0x40, .stag = {5}, .offset = 16384}, 2048);
  s = cutter.next(1500);
  EXPECT_EQ(s.payload_size, 1486u);
  EXPECT_EQ(tagged_of(s).offset, 16384u);
  s = cutter.next(1500);
  EXPECT_EQ(s.payload_size, 562u);
  EXPECT_EQ(tagged_of(s).offset, 17870u);
  EXPECT_TRUE(cutter.done());
}

// DDP-03 DDP-08 DDP-09 DDP-12
TEST(Segmenter, VectorSendOf200OctetsUnderMulpdu128) {
  const octets message = pattern(200);
  segmenter cutter;
  cutter.begin(untagged_header{.ulp_control = 0x43}, 200);
  EXPECT_EQ(ulpdu_of(cutter.next(128), message),
            concat({from_hex("0143 00000000 00000000 00000001 00000000"), const_bytes(message).first(110)}));
  EXPECT_EQ(ulpdu_of(cutter.next(128), message),
            concat({from_hex("4143 00000000 00000000 00000001 0000006e"), const_bytes(message).subspan(110)}));
  EXPECT_TRUE(cutter.done());
}

// DDP-03 DDP-05 DDP-06 DDP-07
TEST(Segmenter, VectorWriteOf200OctetsUnderMulpdu128) {
  const octets message = pattern(200);
  segmenter cutter;
  cutter.begin(tagged_header{.ulp_control = 0x40, .stag = {0x11223344}, .offset = 0x1000}, 200);
  EXPECT_EQ(ulpdu_of(cutter.next(128), message),
            concat({from_hex("8140 11223344 00000000 00001000"), const_bytes(message).first(114)}));
  EXPECT_EQ(ulpdu_of(cutter.next(128), message),
            concat({from_hex("c140 11223344 00000000 00001072"), const_bytes(message).subspan(114)}));
  EXPECT_TRUE(cutter.done());
}

// DDP-17
TEST(Segmenter, ZeroLengthMessageIsOneLastSegment) {
  segmenter cutter;
  EXPECT_TRUE(cutter.done());
  cutter.begin(tagged_header{.ulp_control = 0x40}, 0);
  EXPECT_FALSE(cutter.done());
  EXPECT_EQ(cutter.next_size(128), 0u);
  EXPECT_EQ(ulpdu_of(cutter.next(128), {}), from_hex("c140 00000000 00000000 00000000"));
  EXPECT_TRUE(cutter.done());
  cutter.begin(untagged_header{.ulp_control = 0x43}, 0);
  EXPECT_FALSE(cutter.done());
  EXPECT_EQ(ulpdu_of(cutter.next(128), {}), from_hex("4143 00000000 00000000 00000001 00000000"));
  EXPECT_TRUE(cutter.done());
}

// DDP-03: what the caller left in the header's own fields does not reach the wire.
TEST(Segmenter, LastOffsetAndSequenceAreItsOwn) {
  segmenter cutter;
  cutter.begin(untagged_header{.last = true, .ulp_control = 0x43, .sequence = {77}, .offset = 55}, 200);
  const untagged_header first = untagged_of(cutter.next(128));
  EXPECT_FALSE(first.last);
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(first.sequence, msn{1});
  const untagged_header second = untagged_of(cutter.next(128));
  EXPECT_TRUE(second.last);
  EXPECT_EQ(second.offset, 110u);
  EXPECT_EQ(second.sequence, msn{1});

  cutter.begin(tagged_header{.last = false, .ulp_control = 0x40, .stag = {1}, .offset = 0}, 10);
  EXPECT_TRUE(tagged_of(cutter.next(128)).last);
}

// DDP-10 DDP-13: per queue, from 1, by one per message however many segments it has; tagged messages do not count.
TEST(Segmenter, SequencesOfTheQueuesAreIndependent) {
  segmenter cutter;
  std::array<std::uint32_t, 4> messages{};
  for (std::uint32_t round = 0; round < 40; ++round) {
    const std::uint32_t queue = (round * 7) % 4 == 3 && round % 2 == 0 ? 0 : (round * 7) % 4;
    EXPECT_EQ(cutter.next_sequence(queue).value, messages[queue] + 1);
    ++messages[queue];
    cutter.begin(untagged_header{.ulp_control = 0x43, .queue = queue}, round * 50);
    while (!cutter.done()) {
      const untagged_header header = untagged_of(cutter.next(128));
      EXPECT_EQ(header.queue, queue);
      EXPECT_EQ(header.sequence.value, messages[queue]);
    }
    cutter.begin(tagged_header{.ulp_control = 0x40}, round);
    cutter.next(128);
  }
  for (std::uint32_t queue = 0; queue < 4; ++queue) {
    EXPECT_GT(messages[queue], 0u);
    EXPECT_EQ(cutter.next_sequence(queue).value, messages[queue] + 1);
  }
}

// DDP-11
TEST(Segmenter, SequenceWrapsToZero) {
  segmenter cutter;
  cutter.set_next_sequence(0, {0xFFFFFFFE});
  for (const std::uint32_t want : {0xFFFFFFFEu, 0xFFFFFFFFu, 0u, 1u}) {
    cutter.begin(untagged_header{.ulp_control = 0x43}, 120);
    while (!cutter.done()) EXPECT_EQ(untagged_of(cutter.next(128)).sequence.value, want);
  }
  EXPECT_EQ(cutter.next_sequence(1), msn{1});
}

// DDP-14 DDP-16: each segment obeys the MULPDU in force when it is cut, and what was cut before stays as it is.
TEST(Segmenter, MulpduMayChangeBetweenSegments) {
  constexpr std::array<std::uint32_t, 6> mulpdus{1500, 128, 64768, 129, 500, 128};
  for (const bool tagged : {true, false}) {
    segmenter cutter;
    if (tagged) {
      cutter.begin(tagged_header{.ulp_control = 0x40, .stag = {9}, .offset = 0x8000}, 200'000);
    } else {
      cutter.begin(untagged_header{.ulp_control = 0x43}, 200'000);
    }
    std::uint32_t before = 0;
    for (std::size_t i = 0; !cutter.done(); ++i) {
      const std::uint32_t mulpdu = mulpdus[i % mulpdus.size()];
      const segment s = cutter.next(mulpdu);
      EXPECT_LE(s.header_size + s.payload_size, mulpdu);
      EXPECT_TRUE(s.last || s.header_size + s.payload_size == mulpdu);
      EXPECT_EQ(s.payload_offset, before);
      EXPECT_EQ(tagged ? tagged_of(s).offset - 0x8000 : untagged_of(s).offset, before);
      before += s.payload_size;
    }
    EXPECT_EQ(before, 200'000u);
  }
}

// DDP-15: the longest message, by arithmetic alone.
TEST(Segmenter, LongestMessage) {
  constexpr std::uint32_t size = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t start = 0xFFFFFFFF'00000000;  // the last octet is at 2^64 - 2
  for (const bool tagged : {true, false}) {
    segmenter cutter;
    if (tagged) {
      cutter.begin(tagged_header{.ulp_control = 0x40, .stag = {9}, .offset = start}, size);
    } else {
      cutter.begin(untagged_header{.ulp_control = 0x43}, size);
    }
    std::uint64_t before = 0;
    segment s;
    while (!cutter.done()) {
      s = cutter.next(mpa::max_mulpdu);
      ASSERT_EQ(s.payload_offset, before);
      ASSERT_EQ(tagged ? tagged_of(s).offset - start : untagged_of(s).offset, before);
      ASSERT_EQ(s.last, before + s.payload_size == size);
      before += s.payload_size;
    }
    EXPECT_EQ(before, size);
    EXPECT_TRUE(s.last);
  }
}

}  // namespace
}  // namespace iwarp::ddp
