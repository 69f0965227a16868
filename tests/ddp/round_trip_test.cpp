// segmenter and receiver against each other: what goes in comes out, under changing MULPDUs and scatter lists.
#include "ddp/receiver.hpp"
#include "ddp/segmenter.hpp"
#include "tests/ddp/scripted_upper.hpp"
#include "tests/ddp/segments.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

namespace iwarp::ddp {
namespace {

using test::concat;
using test::framed;
using test::octets;
using test::scripted_upper;
using test_support::random_source;

/// Cuts the next segment of `message` and lets `rx` have it.
void pass_one(segmenter& cutter, std::uint32_t mulpdu, const_bytes message, receiver& rx) {
  const segment s = cutter.next(mulpdu);
  const octets wire =
      concat({std::span(s.header).first(s.header_size), message.subspan(s.payload_offset, s.payload_size)});
  const auto got = rx.on_ulpdu(framed(wire).unit());
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(*got, mpa::ulpdu_answer::taken);
}

// DDP-07 DDP-09 DDP-10 DDP-12 DDP-24
TEST(RoundTrip, UntaggedMessagesOnAllQueues) {
  random_source random(20230);
  scripted_upper upper;
  receiver rx(upper);
  segmenter cutter;
  for (int round = 0; round < 1000; ++round) {
    const octets message = random.octets(random.below(3001));
    // A list of random pieces, some empty, that holds the message and often a little more.
    octets store(message.size() + random.below(3), std::byte{0});
    upper.pieces.clear();
    for (std::size_t at = 0; at < store.size();) {
      const std::size_t n = std::min(store.size() - at, random.chance(20) ? 0 : random.below(900));
      upper.pieces.push_back(mutable_bytes(store).subspan(at, n));
      at += n;
    }
    const untagged_header header{.ulp_control = static_cast<std::uint8_t>(random.below(256)),
                                 .invalidate = {static_cast<std::uint32_t>(random())},
                                 .queue = static_cast<std::uint32_t>(random.below(untagged_queues))};
    const msn sequence = cutter.next_sequence(header.queue);
    cutter.begin(header, static_cast<std::uint32_t>(message.size()));
    while (!cutter.done()) {
      ASSERT_NO_FATAL_FAILURE(pass_one(cutter, static_cast<std::uint32_t>(random.between(128, 1500)), message, rx));
    }
    ASSERT_EQ(upper.messages.size(), 1u);
    const auto& [last, size] = upper.messages[0];
    ASSERT_EQ(size, message.size());
    ASSERT_EQ(last.ulp_control, header.ulp_control);
    ASSERT_EQ(last.invalidate, header.invalidate);
    ASSERT_EQ(last.queue, header.queue);
    ASSERT_EQ(last.sequence, sequence);
    ASSERT_TRUE(std::equal(message.begin(), message.end(), store.begin())) << "round " << round;
    upper.messages.clear();
    upper.calls.clear();
  }
}

// Two sources into one sink: a tagged and an untagged message, segment by segment in random turns.
TEST(RoundTrip, TaggedAndUntaggedMessagesInterleave) {
  random_source random(20231);
  scripted_upper upper;
  receiver rx(upper);
  segmenter writes;
  segmenter sends;
  for (int round = 0; round < 300; ++round) {
    const octets written = random.octets(random.below(3001));
    const octets sent = random.octets(random.below(3001));
    const std::uint64_t offset = random.below(100);
    upper.memory.assign(3200, scripted_upper::untouched);
    octets want = upper.memory;
    std::copy(written.begin(), written.end(), want.begin() + static_cast<std::ptrdiff_t>(offset));
    octets store(sent.size());
    upper.pieces = {mutable_bytes(store)};
    writes.begin(tagged_header{.ulp_control = 0x40, .stag = {0x100}, .offset = offset},
                 static_cast<std::uint32_t>(written.size()));
    sends.begin(untagged_header{.ulp_control = 0x43}, static_cast<std::uint32_t>(sent.size()));
    const auto mulpdu = static_cast<std::uint32_t>(random.between(128, 600));
    while (!writes.done() || !sends.done()) {
      const bool write = sends.done() || (!writes.done() && random.chance(50));
      ASSERT_NO_FATAL_FAILURE(pass_one(write ? writes : sends, mulpdu, write ? written : sent, rx));
    }
    ASSERT_EQ(upper.memory, want) << "round " << round;
    ASSERT_EQ(store, sent) << "round " << round;
    ASSERT_EQ(upper.messages.size(), 1u);
    ASSERT_EQ(upper.messages[0].second, sent.size());
    ASSERT_TRUE(upper.tagged.back().last);
    upper.messages.clear();
    upper.tagged.clear();
    upper.calls.clear();
  }
}

// DDP-11: both sides go on over the wrap.
TEST(RoundTrip, SequenceWraps) {
  scripted_upper upper;
  receiver rx(upper);
  segmenter cutter;
  cutter.set_next_sequence(0, {0xFFFFFFF0});
  rx.set_expected(0, {0xFFFFFFF0});
  const octets message = test::pattern(300);
  octets store(300);
  upper.pieces = {mutable_bytes(store)};
  for (int i = 0; i < 32; ++i) {
    cutter.begin(untagged_header{.ulp_control = 0x43}, 300);
    while (!cutter.done()) ASSERT_NO_FATAL_FAILURE(pass_one(cutter, 128, message, rx));
  }
  EXPECT_EQ(upper.messages.size(), 32u);
  EXPECT_EQ(rx.expected(0), msn{0x10});
  EXPECT_EQ(cutter.next_sequence(0), msn{0x10});
}

}  // namespace
}  // namespace iwarp::ddp
