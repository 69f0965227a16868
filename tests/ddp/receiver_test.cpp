// The data sink of DDP: the order of its checks, its exact bounds, and what it does and does not place.
#include "ddp/receiver.hpp"

#include "ddp/error.hpp"
#include "tests/ddp/scripted_upper.hpp"
#include "tests/ddp/segments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace iwarp::ddp {
namespace {

using mpa::ulpdu_answer;
using test::concat;
using test::emitted;
using test::framed;
using test::from_hex;
using test::octets;
using test::pattern;
using test::scripted_upper;
using test::segment_of;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::byte untouched = scripted_upper::untouched;

class Receiver : public testing::Test {
 protected:
  result<ulpdu_answer> feed(const_bytes ulpdu) { return rx.on_ulpdu(framed(ulpdu).unit()); }
  result<ulpdu_answer> feed(const tagged_header& header, const_bytes payload = {}) {
    return feed(segment_of(header, payload));
  }
  result<ulpdu_answer> feed(const untagged_header& header, const_bytes payload = {}) {
    return feed(segment_of(header, payload));
  }

  /// The buffer of the next untagged message is one piece of `size` octets of `store`.
  void post(std::size_t size) {
    store.assign(size + 16, untouched);
    upper.pieces = {mutable_bytes(store).first(size)};
  }
  const_bytes stored(std::size_t size) const { return const_bytes(store).first(size); }

  scripted_upper upper;
  receiver rx{upper};
  octets store;
};

void expect_taken(const result<ulpdu_answer>& got) {
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(*got, ulpdu_answer::taken);
}

void expect_error(const result<ulpdu_answer>& got, std::error_code want) {
  ASSERT_FALSE(got) << "wanted: " << want.message();
  EXPECT_EQ(got.error(), want) << got.error().message();
}

untagged_header send(std::uint32_t sequence, std::uint32_t offset, bool last) {
  return {.last = last, .ulp_control = 0x43, .sequence = {sequence}, .offset = offset};
}

bool same(const_bytes a, const_bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// --- Headers -------------------------------------------------------------------------------------------------------

TEST_F(Receiver, EmptyUlpduIsTooShort) {
  expect_error(feed(const_bytes{}), errc::segment_too_short);
  EXPECT_THAT(upper.calls, IsEmpty());
}

TEST_F(Receiver, UlpduCutInsideItsHeaderIsTooShort) {
  for (const octets& whole : {emitted(tagged_header{.ulp_control = 0x40}), emitted(send(1, 0, true))}) {
    for (std::size_t n = 1; n < whole.size(); ++n) {
      receiver fresh(upper);
      expect_error(fresh.on_ulpdu(framed({whole.data(), n}).unit()), errc::segment_too_short);
      EXPECT_THAT(upper.take_calls(), IsEmpty()) << n;
    }
  }
}

// DDP-04: every wrong DV, at every length, before the layer above is asked anything.
TEST_F(Receiver, OtherVersionsAreRejected) {
  for (const unsigned wrong : {0u, 2u, 3u}) {
    for (std::size_t size = 1; size <= 40; ++size) {
      octets wire(size);
      wire[0] = static_cast<std::byte>(0xC0 | wrong);
      expect_error(receiver(upper).on_ulpdu(framed(wire).unit()), errc::tagged_bad_version);
      wire[0] = static_cast<std::byte>(0x40 | wrong);
      expect_error(receiver(upper).on_ulpdu(framed(wire).unit()), errc::untagged_bad_version);
    }
  }
  EXPECT_THAT(upper.calls, IsEmpty());
}

// DDP-02
TEST_F(Receiver, ReservedBitsAreIgnored) {
  post(10);
  octets wire = segment_of(send(1, 0, true), pattern(10));
  wire[0] |= std::byte{0x3C};
  expect_taken(feed(wire));
  EXPECT_TRUE(same(stored(10), pattern(10)));
  wire = segment_of(tagged_header{.ulp_control = 0x40}, pattern(10));
  wire[0] |= std::byte{0x3C};
  expect_taken(feed(wire));
  EXPECT_TRUE(same(const_bytes(upper.memory).first(10), pattern(10)));
}

// --- Tagged --------------------------------------------------------------------------------------------------------

// DDP-05 DDP-25
TEST_F(Receiver, TaggedSegmentIsCheckedResolvedPlacedReleasedReported) {
  const tagged_header header{.last = false, .ulp_control = 0x42, .stag = {0x11223344}, .offset = 7};
  expect_taken(feed(header, pattern(100)));
  EXPECT_THAT(upper.calls, ElementsAre("check_tagged 100", "resolve 100", "release 100", "tagged_placed 100"));
  EXPECT_THAT(upper.tagged, ElementsAre(header));
  EXPECT_EQ(upper.pinned, 0);
  const const_bytes memory = upper.memory;
  EXPECT_THAT(memory.first(7), Each(untouched));
  EXPECT_TRUE(same(memory.subspan(7, 100), pattern(100)));
  EXPECT_THAT(memory.subspan(107), Each(untouched));
}

TEST_F(Receiver, VectorWrite) {
  upper.memory.assign(0x40, untouched);
  expect_taken(feed(from_hex("c140 11223344 00000000 00000010 00010203 04050607")));
  EXPECT_TRUE(same(const_bytes(upper.memory).subspan(0x10, 8), from_hex("00010203 04050607")));
  EXPECT_THAT(upper.tagged,
              ElementsAre(tagged_header{.last = true, .ulp_control = 0x40, .stag = {0x11223344}, .offset = 0x10}));
}

// DDP-18: nobody looks at STag and TO of a zero-length segment.
TEST_F(Receiver, ZeroLengthTaggedSegmentIsNotResolved) {
  upper.resolve = errc::tagged_invalid_stag;
  const tagged_header header{.ulp_control = 0x40, .stag = {0xFFFFFFFF}, .offset = 0xFFFFFFFFFFFFFFFF};
  expect_taken(feed(header));
  EXPECT_THAT(upper.calls, ElementsAre("check_tagged 0", "tagged_placed 0"));
  EXPECT_THAT(upper.tagged, ElementsAre(header));
}

// DDP-21: in any TO order, also onto the same octets again.
TEST_F(Receiver, TaggedSegmentsMayComeInAnyOrder) {
  const octets whole = pattern(200);
  const auto part = [&](std::size_t from, std::size_t size) { return const_bytes(whole).subspan(from, size); };
  for (const auto& [from, size] : {std::pair<std::size_t, std::size_t>{150, 50}, {0, 60}, {60, 90}, {50, 20}}) {
    expect_taken(
        feed(tagged_header{.last = from == 50, .ulp_control = 0x40, .stag = {1}, .offset = from}, part(from, size)));
  }
  EXPECT_TRUE(same(const_bytes(upper.memory).first(200), whole));
  EXPECT_THAT(const_bytes(upper.memory).subspan(200), Each(untouched));
}

// DDP-32: first and last octet of the buffer, and one beyond.
TEST_F(Receiver, TaggedBoundsAreExact) {
  upper.memory.assign(100, untouched);
  const auto at = [](std::uint64_t to) { return tagged_header{.ulp_control = 0x40, .stag = {1}, .offset = to}; };
  expect_taken(receiver(upper).on_ulpdu(framed(segment_of(at(0), pattern(1))).unit()));
  expect_taken(receiver(upper).on_ulpdu(framed(segment_of(at(99), pattern(1))).unit()));
  expect_taken(receiver(upper).on_ulpdu(framed(segment_of(at(0), pattern(100))).unit()));
  for (const auto& [to, size] : {std::pair<std::uint64_t, std::size_t>{100, 1}, {99, 2}, {0, 101}, {1, 100}}) {
    upper.memory.assign(100, untouched);
    expect_error(receiver(upper).on_ulpdu(framed(segment_of(at(to), pattern(size))).unit()),
                 errc::tagged_base_or_bounds);
    EXPECT_THAT(upper.memory, Each(untouched));
  }
}

// DDP-25 DDP-31 DDP-32 DDP-33 DDP-34 DDP-35 DDP-36: whatever the resolver refuses is passed on as it is, nothing
// placed.
TEST_F(Receiver, RefusalOfTheResolverIsPassedOn) {
  for (const errc refusal : {errc::tagged_invalid_stag, errc::tagged_base_or_bounds, errc::tagged_not_associated,
                             errc::tagged_no_access, errc::tagged_offset_wrap}) {
    upper.resolve = refusal;
    receiver fresh(upper);
    expect_error(fresh.on_ulpdu(framed(segment_of(tagged_header{.ulp_control = 0x40}, pattern(9))).unit()), refusal);
    EXPECT_THAT(upper.take_calls(), ElementsAre("check_tagged 9", "resolve 9"));
    EXPECT_THAT(upper.memory, Each(untouched));
  }
}

// The fields of the layer above come before the buffer.
TEST_F(Receiver, TaggedCheckOfTheLayerAboveComesFirst) {
  upper.check = std::make_error_code(std::errc::bad_message);
  upper.resolve = errc::tagged_invalid_stag;
  expect_error(feed(tagged_header{.ulp_control = 0x4F}, pattern(5)), upper.check);
  EXPECT_THAT(upper.calls, ElementsAre("check_tagged 5"));
}

TEST_F(Receiver, TaggedErrorAfterPlacingIsPassedOnAndNothingStaysPinned) {
  upper.placed = std::make_error_code(std::errc::bad_message);
  expect_error(feed(tagged_header{.ulp_control = 0x42}, pattern(5)), upper.placed);
  EXPECT_EQ(upper.pinned, 0);
}

// --- Untagged: what is placed and delivered ------------------------------------------------------------------------

// DDP-08 DDP-24
TEST_F(Receiver, SingleSegmentMessage) {
  post(20);
  expect_taken(feed(from_hex("4143 00000000 00000000 00000001 00000000 68656c6c 6f")));
  EXPECT_THAT(upper.calls, ElementsAre("check_untagged 5", "buffer", "untagged_placed 5"));
  ASSERT_EQ(upper.messages.size(), 1u);
  EXPECT_EQ(upper.messages[0].first, send(1, 0, true));
  EXPECT_TRUE(same(stored(5), from_hex("68656c6c 6f")));
  EXPECT_THAT(const_bytes(store).subspan(5), Each(untouched));
  EXPECT_EQ(rx.expected(0), msn{2});
  EXPECT_FALSE(rx.in_message(0));
}

// DDP-12 DDP-22 DDP-23 DDP-24: asked for a buffer once, delivered once, with the octets of all segments.
TEST_F(Receiver, MessageOfSeveralSegments) {
  post(300);
  const octets whole = pattern(300);
  const auto part = [&](std::size_t from, std::size_t size) { return const_bytes(whole).subspan(from, size); };
  expect_taken(feed(send(1, 0, false), part(0, 110)));
  EXPECT_TRUE(rx.in_message(0));
  EXPECT_EQ(rx.expected(0), msn{1});
  expect_taken(feed(send(1, 110, false), part(110, 1)));
  expect_taken(feed(send(1, 111, false), part(111, 0)));
  EXPECT_THAT(upper.messages, IsEmpty());
  expect_taken(feed(send(1, 111, true), part(111, 189)));
  EXPECT_THAT(upper.calls, ElementsAre("check_untagged 110", "buffer", "check_untagged 1", "check_untagged 0",
                                       "check_untagged 189", "untagged_placed 300"));
  EXPECT_EQ(upper.messages[0].first, send(1, 111, true));
  EXPECT_TRUE(same(stored(300), whole));
  EXPECT_FALSE(rx.in_message(0));
  EXPECT_EQ(rx.expected(0), msn{2});
}

// DDP-17: a zero-length message uses a buffer up and is delivered.
TEST_F(Receiver, ZeroLengthMessageUsesABuffer) {
  post(0);
  expect_taken(feed(send(1, 0, true)));
  EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 0", "buffer", "untagged_placed 0"));
  EXPECT_EQ(rx.expected(0), msn{2});
  upper.pieces.clear();  // a receive without any piece
  expect_taken(feed(send(2, 0, true)));
  EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 0", "buffer", "untagged_placed 0"));
}

// The last segment may be empty when the sender learned late that the message ends.
TEST_F(Receiver, EmptyLastSegmentEndsTheMessage) {
  post(10);
  expect_taken(feed(send(1, 0, false), pattern(10)));
  expect_taken(feed(send(1, 10, true)));
  EXPECT_EQ(upper.messages.at(0).second, 10u);
}

// DDP-10 DDP-13
TEST_F(Receiver, QueuesCountIndependently) {
  post(50);
  for (std::uint32_t queue = 0; queue < untagged_queues; ++queue) {
    for (std::uint32_t i = 1; i <= queue + 1; ++i) {
      expect_taken(feed(untagged_header{.ulp_control = 0x43, .queue = queue, .sequence = {i}}, pattern(3)));
    }
  }
  for (std::uint32_t queue = 0; queue < untagged_queues; ++queue) EXPECT_EQ(rx.expected(queue).value, queue + 2);
}

// DDP-13: a message of one queue inside a message of another.
TEST_F(Receiver, MessagesOfDifferentQueuesInterleave) {
  octets first(40, untouched);
  octets second(40, untouched);
  const auto on = [](std::uint32_t queue, std::uint32_t offset, bool last) {
    return untagged_header{.last = last, .ulp_control = 0x43, .queue = queue, .sequence = {1}, .offset = offset};
  };
  upper.pieces = {mutable_bytes(first)};
  expect_taken(feed(on(0, 0, false), pattern(10)));
  std::vector<mutable_bytes> other{mutable_bytes(second)};
  std::swap(upper.pieces, other);  // `other` keeps the first message's list alive, as a posted receive does
  expect_taken(feed(on(2, 0, false), pattern(20, 100)));
  expect_taken(feed(on(0, 10, true), pattern(10, 10)));
  expect_taken(feed(on(2, 20, true), pattern(20, 120)));
  EXPECT_TRUE(same(const_bytes(first).first(20), pattern(20)));
  EXPECT_TRUE(same(const_bytes(second), pattern(40, 100)));
  EXPECT_THAT(const_bytes(first).subspan(20), Each(untouched));
  ASSERT_EQ(upper.messages.size(), 2u);
  EXPECT_EQ(upper.messages[0].second, 20u);
  EXPECT_EQ(upper.messages[1].second, 40u);
}

TEST_F(Receiver, TaggedSegmentInsideAnUntaggedMessage) {
  post(20);
  expect_taken(feed(send(1, 0, false), pattern(10)));
  expect_taken(feed(tagged_header{.ulp_control = 0x40, .stag = {3}, .offset = 30}, pattern(25, 77)));
  expect_taken(feed(tagged_header{.ulp_control = 0x40}));
  EXPECT_TRUE(rx.in_message(0));
  expect_taken(feed(send(1, 10, true), pattern(10, 10)));
  EXPECT_TRUE(same(stored(20), pattern(20)));
  EXPECT_TRUE(same(const_bytes(upper.memory).subspan(30, 25), pattern(25, 77)));
}

// DDP-11
TEST_F(Receiver, SequenceWrapsToZero) {
  post(10);
  rx.set_expected(0, {0xFFFFFFFE});
  for (const std::uint32_t sequence : {0xFFFFFFFEu, 0xFFFFFFFFu, 0u, 1u}) {
    expect_taken(feed(send(sequence, 0, false), pattern(5)));
    expect_taken(feed(send(sequence, 5, true), pattern(5, 5)));
  }
  EXPECT_EQ(upper.messages.size(), 4u);
  EXPECT_EQ(rx.expected(0), msn{2});
}

// --- Untagged: scatter lists ---------------------------------------------------------------------------------------

// Every cut of a message into two segments, over lists with empty pieces at either end and in the middle.
TEST_F(Receiver, ScatterListIsFilledInOrderAtEveryCut) {
  constexpr std::size_t total = 24;
  const octets whole = pattern(total);
  const std::vector<std::vector<std::size_t>> lists{
      {24}, {24, 0}, {0, 24}, {1, 23}, {23, 1}, {0, 0, 7, 0, 0, 9, 8, 0}, {8, 8, 8}, {5, 0, 5, 0, 5, 0, 5, 0, 4}, {30}};
  for (const auto& sizes : lists) {
    for (std::size_t cut = 0; cut <= total; ++cut) {
      // Between the pieces lie octets that nobody may touch.
      octets arena(200, untouched);
      std::size_t at = 3;
      upper.pieces.clear();
      for (const std::size_t size : sizes) {
        upper.pieces.push_back(mutable_bytes(arena).subspan(at, size));
        at += size + 3;
      }
      receiver fresh(upper);
      const const_bytes all = whole;
      expect_taken(fresh.on_ulpdu(framed(segment_of(send(1, 0, false), all.first(cut))).unit()));
      expect_taken(
          fresh.on_ulpdu(framed(segment_of(send(1, static_cast<std::uint32_t>(cut), true), all.subspan(cut))).unit()));
      octets want(200, untouched);
      std::size_t done = 0;
      at = 3;
      for (const std::size_t size : sizes) {
        const std::size_t n = std::min(size, total - done);
        std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(done), n,
                    want.begin() + static_cast<std::ptrdiff_t>(at));
        done += n;
        at += size + 3;
      }
      ASSERT_EQ(arena, want) << "cut at " << cut << " of a list of " << sizes.size();
    }
  }
}

// One octet per segment.
TEST_F(Receiver, ScatterListIsFilledOctetByOctet) {
  octets a(5, untouched);
  octets b(1, untouched);
  octets c(14, untouched);
  upper.pieces = {mutable_bytes(a), {}, mutable_bytes(b), {}, {}, mutable_bytes(c)};
  const octets whole = pattern(20);
  for (std::uint32_t i = 0; i < 20; ++i) expect_taken(feed(send(1, i, i == 19), const_bytes(whole).subspan(i, 1)));
  EXPECT_EQ(concat({a, b, c}), whole);
}

// The next message starts its own list anew.
TEST_F(Receiver, EachMessageStartsAtTheFrontOfItsList) {
  for (std::uint32_t i = 1; i <= 3; ++i) {
    octets a(4, untouched);
    octets b(40, untouched);
    upper.pieces = {mutable_bytes(a), mutable_bytes(b)};
    expect_taken(feed(send(i, 0, true), pattern(6 + i)));
    EXPECT_TRUE(same(a, pattern(4)));
    EXPECT_TRUE(same(const_bytes(b).first(2 + i), pattern(2 + i, 4)));
    EXPECT_THAT(const_bytes(b).subspan(2 + i), Each(untouched));
  }
}

// A marker anywhere in the FPDU, also inside the header, changes nothing.
TEST_F(Receiver, MarkerAnywhereInTheUlpdu) {
  for (std::size_t marker = 0; marker <= 48; ++marker) {
    post(20);
    upper.memory.assign(256, untouched);
    receiver fresh(upper);
    expect_taken(fresh.on_ulpdu(framed(segment_of(send(1, 0, true), pattern(20)), marker).unit()));
    EXPECT_TRUE(same(stored(20), pattern(20))) << marker;
    expect_taken(fresh.on_ulpdu(
        framed(segment_of(tagged_header{.ulp_control = 0x40, .stag = {1}, .offset = 2}, pattern(21)), marker).unit()));
    EXPECT_TRUE(same(const_bytes(upper.memory).subspan(2, 21), pattern(21))) << marker;
  }
}

// --- Untagged: checks ----------------------------------------------------------------------------------------------

TEST_F(Receiver, UntaggedCheckOfTheLayerAboveComesFirst) {
  upper.check = std::make_error_code(std::errc::bad_message);
  expect_error(feed(untagged_header{.ulp_control = 0x4F, .queue = 9, .sequence = {9}, .offset = 9}), upper.check);
  EXPECT_THAT(upper.calls, ElementsAre("check_untagged 0"));
}

// DDP-26: before MSN, buffer and MO.
TEST_F(Receiver, UnknownQueue) {
  for (const std::uint32_t queue : {4u, 5u, 0x100u, 0x80000000u, 0xFFFFFFFFu}) {
    receiver fresh(upper);
    expect_error(fresh.on_ulpdu(framed(segment_of(untagged_header{
                                           .ulp_control = 0x43, .queue = queue, .sequence = {7}, .offset = 7}))
                                    .unit()),
                 errc::untagged_invalid_queue);
    EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 0"));
  }
}

// DDP-28: before buffer and MO.
TEST_F(Receiver, SequenceOtherThanTheExpectedOne) {
  upper.answer = buffer_answer::none;
  for (const std::uint32_t sequence : {0u, 2u, 3u, 0x80000001u, 0xFFFFFFFFu}) {
    receiver fresh(upper);
    expect_error(fresh.on_ulpdu(framed(segment_of(send(sequence, 7, true), pattern(3))).unit()),
                 errc::untagged_msn_out_of_range);
    EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 3"));
  }
}

// DDP-22 DDP-28: a message that was delivered does not come again.
TEST_F(Receiver, RepeatedMessageIsOutOfRange) {
  post(10);
  expect_taken(feed(send(1, 0, true), pattern(3)));
  expect_error(feed(send(1, 0, true), pattern(3)), errc::untagged_msn_out_of_range);
  EXPECT_EQ(upper.messages.size(), 1u);
}

// DDP-28: the next message cannot begin while one is in progress.
TEST_F(Receiver, NextMessageBeforeTheLastSegment) {
  post(10);
  expect_taken(feed(send(1, 0, false), pattern(3)));
  expect_error(feed(send(2, 0, true), pattern(3)), errc::untagged_msn_out_of_range);
}

// DDP-27: before MO and length.
TEST_F(Receiver, NoBuffer) {
  upper.answer = buffer_answer::none;
  expect_error(feed(send(1, 5, true), pattern(3)), errc::untagged_no_buffer);
  EXPECT_THAT(upper.calls, ElementsAre("check_untagged 3", "buffer"));
}

TEST_F(Receiver, ErrorOfTheBufferIsPassedOn) {
  upper.buffer = std::make_error_code(std::errc::io_error);
  expect_error(feed(send(1, 5, true), pattern(3)), upper.buffer);
}

// DDP-29: a message starts at MO 0; MO before length.
TEST_F(Receiver, FirstSegmentWithAnOffset) {
  post(10);
  for (const std::uint32_t offset : {1u, 10u, 0xFFFFFFFFu}) {
    receiver fresh(upper);
    expect_error(fresh.on_ulpdu(framed(segment_of(send(1, offset, true), pattern(20))).unit()),
                 errc::untagged_invalid_offset);
    EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 20", "buffer"));
    EXPECT_FALSE(fresh.in_message(0));
  }
  EXPECT_THAT(store, Each(untouched));
}

// DDP-29: gaps, overlaps and repetitions inside a message.
TEST_F(Receiver, OffsetThatDoesNotContinueTheMessage) {
  for (const std::uint32_t offset : {0u, 4u, 6u, 100u, 0x80000005u, 0xFFFFFFFFu}) {
    post(100);
    receiver fresh(upper);
    expect_taken(fresh.on_ulpdu(framed(segment_of(send(1, 0, false), pattern(5))).unit()));
    expect_error(fresh.on_ulpdu(framed(segment_of(send(1, offset, true), pattern(5, 5))).unit()),
                 errc::untagged_invalid_offset);
    EXPECT_THAT(const_bytes(store).subspan(5), Each(untouched));
  }
}

// DDP-30: exactly full fits, one octet more does not, in the first segment and in a later one; also when empty.
TEST_F(Receiver, MessageLongerThanItsBuffer) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40}}) {
    post(size);
    expect_taken(receiver(upper).on_ulpdu(framed(segment_of(send(1, 0, true), pattern(size))).unit()));
    EXPECT_TRUE(same(stored(size), pattern(size)));
    post(size);
    expect_error(receiver(upper).on_ulpdu(framed(segment_of(send(1, 0, true), pattern(size + 1))).unit()),
                 errc::untagged_too_long);
    EXPECT_THAT(store, Each(untouched));  // DDP-25: not even the part that would fit

    receiver fresh(upper);
    expect_taken(fresh.on_ulpdu(framed(segment_of(send(1, 0, false), pattern(size))).unit()));
    EXPECT_THAT(const_bytes(store).subspan(size), Each(untouched));
    expect_error(fresh.on_ulpdu(framed(segment_of(send(1, static_cast<std::uint32_t>(size), true), pattern(1))).unit()),
                 errc::untagged_too_long);
    EXPECT_THAT(const_bytes(store).subspan(size), Each(untouched));
  }
}

// DDP-15 DDP-30: the message ends at 2^32 - 1 octets even in a larger buffer. All pieces lie on the same memory.
TEST_F(Receiver, MessageOfFourGibibytesLessOne) {
  constexpr std::size_t per_segment = 65535 - untagged_header_size;
  constexpr std::uint64_t limit = std::numeric_limits<std::uint32_t>::max();
  octets arena(1 << 16);
  upper.pieces.assign((1 << 16) + 1, mutable_bytes(arena));
  std::uint64_t before = 0;
  octets wire = segment_of(send(1, 0, false), pattern(per_segment));
  while (before != limit) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(per_segment, limit - before));
    wire.resize(untagged_header_size + size);
    send(1, static_cast<std::uint32_t>(before), false).emit(std::span(wire).first<untagged_header_size>());
    octets raw(2);
    store_be(std::span(raw).first<2>(), static_cast<std::uint16_t>(wire.size()));
    raw.insert(raw.end(), wire.begin(), wire.end());
    const auto got = rx.on_ulpdu(mpa::ulpdu(raw, wire.size(), framed::no_marker, 0));
    ASSERT_TRUE(got) << got.error().message() << " at " << before;
    before += size;
    upper.calls.clear();
  }
  receiver one_more = rx;
  expect_error(one_more.on_ulpdu(framed(segment_of(send(1, 0xFFFFFFFF, true), pattern(1))).unit()),
               errc::untagged_too_long);
  expect_taken(feed(send(1, 0xFFFFFFFF, true)));
  ASSERT_EQ(upper.messages.size(), 1u);
  EXPECT_EQ(upper.messages[0].second, 0xFFFFFFFFu);
}

TEST_F(Receiver, UntaggedErrorAfterPlacingIsPassedOn) {
  post(10);
  upper.placed = std::make_error_code(std::errc::bad_message);
  expect_error(feed(send(1, 0, true), pattern(5)), upper.placed);
}

// --- Hold ----------------------------------------------------------------------------------------------------------

TEST_F(Receiver, HeldSegmentIsTakenWhenABufferCame) {
  upper.answer = buffer_answer::hold;
  const octets wire = segment_of(send(1, 0, false), pattern(5));
  for (int i = 0; i < 3; ++i) {
    const auto got = feed(wire);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, ulpdu_answer::held);
    EXPECT_FALSE(rx.in_message(0));
    EXPECT_EQ(rx.expected(0), msn{1});
    EXPECT_THAT(upper.take_calls(), ElementsAre("check_untagged 5", "buffer"));
  }
  upper.answer = buffer_answer::ready;
  post(10);
  expect_taken(feed(wire));
  expect_taken(feed(send(1, 5, true), pattern(5, 5)));
  EXPECT_TRUE(same(stored(10), pattern(10)));
  EXPECT_EQ(upper.messages.size(), 1u);
}

// A message that has its buffer is not held again in the middle.
TEST_F(Receiver, LaterSegmentsAskForNoBuffer) {
  post(10);
  expect_taken(feed(send(1, 0, false), pattern(5)));
  upper.answer = buffer_answer::hold;
  expect_taken(feed(send(1, 5, true), pattern(5, 5)));
  const auto got = feed(send(2, 0, true), pattern(5));
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, ulpdu_answer::held);
}

// What is wrong with QN or MSN is found before waiting; the rest when the buffer is there.
TEST_F(Receiver, HoldComesAfterQueueAndSequence) {
  upper.answer = buffer_answer::hold;
  expect_error(receiver(upper).on_ulpdu(framed(segment_of(send(2, 0, true))).unit()), errc::untagged_msn_out_of_range);
  const octets gap = segment_of(send(1, 3, true), pattern(1));
  ASSERT_EQ(feed(gap).value_or(ulpdu_answer::taken), ulpdu_answer::held);
  upper.answer = buffer_answer::ready;
  post(10);
  expect_error(feed(gap), errc::untagged_invalid_offset);
}

// --- After an error ------------------------------------------------------------------------------------------------

// DDP-36 DDP-37: dropped silently, whatever comes; the layer above hears of none of it.
TEST_F(Receiver, SegmentsAfterAnErrorAreDropped) {
  post(100);
  expect_taken(feed(send(1, 0, false), pattern(5)));
  expect_error(feed(send(1, 6, true), pattern(5)), errc::untagged_invalid_offset);
  upper.calls.clear();
  const octets before = store;
  expect_taken(feed(send(1, 5, true), pattern(5)));
  expect_taken(feed(tagged_header{.ulp_control = 0x40}, pattern(5)));
  expect_taken(feed(const_bytes{}));
  expect_taken(feed(from_hex("00")));
  EXPECT_THAT(upper.calls, IsEmpty());
  EXPECT_EQ(store, before);
  EXPECT_THAT(upper.memory, Each(untouched));
}

// DDP-37: whichever call it was that failed.
TEST_F(Receiver, EveryKindOfErrorStopsTheStream) {
  const std::error_code bad = std::make_error_code(std::errc::bad_message);
  const octets write = segment_of(tagged_header{.ulp_control = 0x40}, pattern(5));
  const octets message = segment_of(send(1, 0, true), pattern(5));
  post(10);
  for (std::error_code scripted_upper::*failing :
       {&scripted_upper::check, &scripted_upper::resolve, &scripted_upper::buffer, &scripted_upper::placed}) {
    for (const octets& wire : {write, message}) {
      receiver fresh(upper);
      upper.*failing = bad;
      const bool failed = !fresh.on_ulpdu(framed(wire).unit());
      upper.*failing = std::error_code{};
      upper.calls.clear();
      expect_taken(fresh.on_ulpdu(framed(write).unit()));
      EXPECT_EQ(upper.take_calls().empty(), failed);
    }
  }
}

// --- Every bit of a header -----------------------------------------------------------------------------------------

// The second segment of a message with any one header bit flipped: each field has its error, or is not DDP's business.
TEST_F(Receiver, EveryBitOfALaterHeaderHasItsAnswer) {
  const octets good = segment_of(send(1, 5, true), pattern(5, 5));
  for (std::size_t bit = 0; bit < untagged_header_size * 8; ++bit) {
    post(10);
    receiver fresh(upper);
    expect_taken(fresh.on_ulpdu(framed(segment_of(send(1, 0, false), pattern(5))).unit()));
    octets wire = good;
    const std::size_t at = bit / 8;
    wire[at] ^= static_cast<std::byte>(0x80 >> (bit % 8));
    const auto got = fresh.on_ulpdu(framed(wire).unit());
    SCOPED_TRACE(testing::Message() << "octet " << at << ", bit " << bit % 8);
    if (bit == 0) {
      expect_taken(got);  // T: a tagged segment, its TO where QN and MSN were
      EXPECT_EQ(upper.tagged.back().offset, 1u);
    } else if (at == 0 && bit >= 6) {
      expect_error(got, errc::untagged_bad_version);
    } else if (at < 6) {
      expect_taken(got);  // L, reserved, RsvdULP
    } else if (at < 10) {
      // QN 1 and 2 exist and expect MSN 1 as well, but at MO 0.
      const std::uint32_t queue = load_be<std::uint32_t>(const_bytes(wire).subspan<6, 4>());
      expect_error(got, queue < untagged_queues ? errc::untagged_invalid_offset : errc::untagged_invalid_queue);
    } else if (at < 14) {
      expect_error(got, errc::untagged_msn_out_of_range);
    } else {
      expect_error(got, errc::untagged_invalid_offset);
    }
  }
}

}  // namespace
}  // namespace iwarp::ddp
