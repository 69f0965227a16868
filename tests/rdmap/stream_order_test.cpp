// Order: of requests and their completions, of Reads against the depths and fences, of answers against what was sent
// before them, and of delivery when tagged and untagged messages run through each other.
#include <gtest/gtest.h>

#include "tests/rdmap/engine_pair.hpp"
#include "tests/rdmap/scripted_peer.hpp"
#include "tests/support/random.hpp"

namespace iwarp::stream_test {
namespace {

using rdmap::operation;
using rdmap::stream_event;
using rdmap::stream_state;
using rdmap::wr_status;

constexpr std::uint32_t shared = 0x11223344;
constexpr std::uint64_t base = 0x1000;

unsigned opcode_of(const octets& ulpdu) { return std::to_integer<unsigned>(ulpdu.at(1)) & 0xF; }

std::vector<unsigned> opcodes(const std::vector<octets>& ulpdus) {
  std::vector<unsigned> out;
  for (const octets& u : ulpdus) out.push_back(opcode_of(u));
  return out;
}
using ops = std::vector<unsigned>;

// RDMAP-24, VRB-17; field faults B187, B016: never more Reads under way than ORD, whatever was posted; what stands
// behind a Read that waits, waits too.
TEST(Ord, IsNeverExceeded) {
  for (const std::uint16_t depth : {std::uint16_t{1}, std::uint16_t{3}, std::uint16_t{16}}) {
    rdmap::stream_options options;
    options.startup.ord = depth;
    scripted_peer peer({}, options);
    region& own = peer.side.user.add(1000);
    peer.open();
    for (std::size_t i = 0; i < 40; ++i) {
      peer.side.read(own.element(i, 1), {stag{1}, i});
      if (i % 8 == 7) peer.side.send(own.element(0, 4));
    }
    std::size_t asked = 0, answered = 0, sends = 0;
    while (answered != 40) {
      for (const octets& u : peer.take()) {
        if (opcode_of(u) == 1) {
          EXPECT_EQ(u, read_request_segment(static_cast<std::uint32_t>(asked + 1), {.sink = own.key.value,
                                                                                    .sink_offset = own.base + asked,
                                                                                    .size = 1,
                                                                                    .source = 1,
                                                                                    .source_offset = asked}));
          ++asked;
        } else {
          EXPECT_EQ(asked, ++sends * 8) << "DDP-19: in the order they were posted";
        }
      }
      ASSERT_EQ(asked, std::min<std::size_t>(answered + depth, 40));
      peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base + answered}, pattern(1, answered)));
      ++answered;
      ASSERT_FALSE(HasFailure());
    }
    peer.take();
    EXPECT_EQ(peer.side.count(wr_status::success), 45u);
  }
}

// VRB-15; field faults B016, B155: Read, Read, fenced Send, Write, Read with ORD 1 and slow answers.
TEST(Fence, HoldsUntilEarlierReadsAreDone) {
  rdmap::stream_options options;
  options.startup.ord = 1;
  scripted_peer peer({}, options);
  region& own = peer.side.user.add(64);
  peer.open();
  const auto answer = [&] {
    peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(4)));
  };
  peer.side.read(own.element(0, 4), {stag{1}, 0});
  peer.side.read(own.element(0, 4), {stag{1}, 0});
  peer.side.post({.op = operation::send, .fence = true}, {own.element(0, 4)});
  peer.side.write(own.element(0, 4), {stag{1}, 0});
  peer.side.read(own.element(0, 4), {stag{1}, 0});
  EXPECT_EQ(opcodes(peer.take()), (ops{1}));
  answer();
  EXPECT_EQ(opcodes(peer.take()), (ops{1}));
  EXPECT_TRUE(peer.take().empty());
  answer();
  EXPECT_EQ(opcodes(peer.take()), (ops{3, 0, 1}));
  EXPECT_EQ(peer.side.count(wr_status::success), 4u);
  answer();
  EXPECT_EQ(peer.side.count(wr_status::success), 5u);
}

TEST(Fence, OfEveryOperation) {
  for (const auto op :
       {operation::send, operation::send_solicited, operation::write, operation::read, operation::local_invalidate}) {
    scripted_peer peer;
    region& own = peer.side.user.add(64);
    region& lent = peer.side.user.add(64);
    peer.open();
    peer.side.read(own.element(0, 4), {stag{1}, 0});
    std::vector<rdmap::sge> elements;
    if (op != operation::local_invalidate) elements.push_back(own.element(0, 4));
    peer.side.post({.op = op, .fence = true, .remote = stag{1}, .invalidate = lent.key}, elements);
    EXPECT_EQ(opcodes(peer.take()), (ops{1}));
    EXPECT_TRUE(lent.valid);
    peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(4)));
    EXPECT_EQ(peer.take().size(), op == operation::local_invalidate ? 0u : 1u);
    EXPECT_EQ(lent.valid, op != operation::local_invalidate);
  }
}

// RDMAP-50, RDMAP-51, RDMAP-52: completions keep the order of posting; a Send waits for TCP and for earlier Reads.
TEST(Completions, InOrderAndNotEarly) {
  scripted_peer peer;
  region& own = peer.side.user.add(3000);
  peer.open();
  peer.side.send(own.element(0, 3000));
  peer.side.read(own.element(0, 4), {stag{1}, 0});
  peer.side.send(own.element(0, 4));
  const std::size_t wire = 2 * (1442 + 6) + (18 + 3000 - 2 * 1424 + 6 + 3) / 4 * 4;
  octets out = peer.drain(wire - 1);
  EXPECT_TRUE(peer.side.user.sends.empty()) << "one octet is missing";
  out = std::move(out) + peer.drain(1);
  EXPECT_EQ(peer.side.user.sends.size(), 1u);
  out = std::move(out) + peer.drain();
  EXPECT_EQ(peer.side.user.sends.size(), 1u);
  EXPECT_EQ(opcodes(peer.splitter.split(out)), (ops{3, 3, 3, 1, 3}));
  peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(4)));
  EXPECT_EQ(peer.side.user.sends.size(), 3u);
}

// RDMAP-17, RDMAP-25, RDMAP-56: answers in the order of the requests, also when they are long.
TEST(Answers, InTheOrderOfRequests) {
  scripted_peer peer;
  region& lent = peer.side.user.add(100'000, {.remote_read = true}, shared, base);
  fill(lent.bytes(), 1);
  peer.open();
  const std::uint32_t sizes[] = {50'000, 0, 1, 100'000, 1428, 1429};
  std::uint32_t sequence = 0;
  for (const std::uint32_t size : sizes) {
    ++sequence;
    peer.send(read_request_segment(
        sequence, {.sink = sequence, .sink_offset = 7, .size = size, .source = shared, .source_offset = base}));
  }
  std::uint32_t current = 1;
  std::uint64_t got = 0;
  for (const octets& u : peer.take()) {
    ASSERT_EQ(opcode_of(u), 2u);
    const std::size_t n = u.size() - 14;
    const bool last = got + n == sizes[current - 1];
    ASSERT_TRUE(u == segment(tagged{.op = 2, .stag = current, .offset = 7 + got, .last = last},
                             lent.copy(static_cast<std::size_t>(got), n)));
    got += n;
    if (last) ++current, got = 0;
  }
  EXPECT_EQ(current, 7u);
}

// Neither side of the wire starves: own requests and answers take turns, message by message (a design promise); they
// are never interleaved, which siw would refuse.
TEST(Answers, TakeTurnsWithRequests) {
  scripted_peer peer;
  region& lent = peer.side.user.add(4000, {.remote_read = true, .remote_write = true}, shared, base);
  peer.open();
  for (std::uint32_t i = 1; i <= 16; ++i)
    peer.send(read_request_segment(i, {.sink = i, .size = 4000, .source = shared, .source_offset = base}));
  for (int i = 0; i < 16; ++i) peer.side.write(lent.element(0, 4000), {stag{1}, 0});
  const auto seen = opcodes(peer.take());
  EXPECT_EQ(seen.size(), 3u * 32);
  std::size_t answers_in_a_row = 0, longest = 0;
  for (std::size_t i = 0; i < seen.size(); i += 3) {
    EXPECT_EQ(seen[i], seen[i + 1]);
    EXPECT_EQ(seen[i], seen[i + 2]);
    answers_in_a_row = seen[i] == 2 ? answers_in_a_row + 1 : 0;
    longest = std::max(longest, answers_in_a_row);
  }
  EXPECT_LE(longest, 4u);
}

// A request that waits for its fence or for ORD does not keep the peer's answers.
TEST(Answers, GoOutWhileRequestsWait) {
  scripted_peer peer;
  region& lent = peer.side.user.add(64, {.remote_read = true}, shared, base);
  peer.open();
  peer.side.read(lent.element(0, 4), {stag{1}, 0});
  peer.side.post({.op = operation::send, .fence = true}, {lent.element(0, 4)});
  EXPECT_EQ(opcodes(peer.take()), (ops{1}));
  for (std::uint32_t i = 1; i <= 10; ++i)
    peer.send(read_request_segment(i, {.sink = i, .size = 4, .source = shared, .source_offset = base}));
  EXPECT_EQ(peer.take().size(), 10u);
}

// Delivery -----------------------------------------------------------------------------------------------------------

// DDP-22, DDP-23, RDMAP-26, RDMAP-55: a Send or Read Request between the segments of a Write is not delivered or
// answered before the Write has ended.
TEST(Delivery, WaitsForAnEarlierTaggedMessage) {
  scripted_peer peer;
  peer.side.user.add(64, {.remote_read = true, .remote_write = true}, shared, base);
  region& into = peer.side.user.add(64);
  for (int i = 0; i < 4; ++i) peer.side.user.post_receive({into.element(0, 8)});
  peer.open();
  peer.send(segment(tagged{.stag = shared, .offset = base, .last = false}, pattern(8, 1)));
  peer.send(segment(untagged{}, pattern(8, 2)));
  peer.send(read_request_segment(1, {.sink = 5, .size = 16, .source = shared, .source_offset = base}));
  peer.send(segment(untagged{.sequence = 2, .last = false}, pattern(4, 3)));
  peer.send(segment(untagged{.sequence = 2, .offset = 4}, pattern(4, 3)));
  EXPECT_TRUE(peer.side.user.receives.empty());
  EXPECT_TRUE(peer.take().empty());
  peer.send(segment(tagged{.stag = shared, .offset = base + 8}, pattern(8, 4)));
  EXPECT_EQ(peer.side.user.receives.size(), 2u);
  EXPECT_EQ(peer.take(), (std::vector<octets>{segment(tagged{.op = 2, .stag = 5}, pattern(8, 1) + pattern(8, 4))}));
  peer.send(segment(untagged{.sequence = 3}));
  EXPECT_EQ(peer.side.user.receives.size(), 3u) << "and then all goes on as usual";
}

TEST(Delivery, WaitsForAnOpenResponseToo) {
  scripted_peer peer;
  region& own = peer.side.user.add(64);
  peer.side.user.post_receive(own);
  peer.open();
  peer.side.read(own.element(0, 8), {stag{1}, 0});
  peer.take();
  peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base, .last = false}, octets(4)));
  peer.send(segment(untagged{}, pattern(8, 2)));
  EXPECT_TRUE(peer.side.user.receives.empty());
  peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base + 4}, octets(4)));
  EXPECT_EQ(peer.side.user.receives.size(), 1u);
  EXPECT_EQ(peer.side.count(wr_status::success), 1u);
}

// A Write that is open for ever: what waits behind it is bounded, and each receive completes once (E35).
TEST(Delivery, OfWhatWaitsForEverIsBounded) {
  scripted_peer peer;
  region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
  region& into = peer.side.user.add(64);
  peer.open();
  peer.send(segment(tagged{.stag = shared, .offset = base, .last = false}, pattern(8, 1)));
  octets last;
  for (std::uint32_t i = 1; i <= 100 && !peer.side.engine.ended(); ++i) {
    peer.side.user.post_receive(into);
    last = segment(untagged{.sequence = i}, pattern(8, i));
    peer.send(last);
  }
  peer.expect_terminate(terminate_segment(0x02, 7, last));
  EXPECT_EQ(peer.side.user.receives.size(), peer.side.user.receives_taken());
  for (const auto& done : peer.side.user.receives) EXPECT_EQ(done.result.status, wr_status::flushed);
  EXPECT_EQ(target.copy(0, 8), pattern(8, 1));
}

// RDMAP-64: the message in error is the Send that waited, not the Write segment that let it be delivered. RDMAP-36: its
// STag is still good while it waits.
TEST(Delivery, AnErrorOfWhatWaitedIsItsOwn) {
  scripted_peer peer;
  region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
  region& into = peer.side.user.add(64);
  peer.side.user.post_receive(into);
  peer.side.user.post_receive(into);
  peer.open();
  peer.send(segment(tagged{.stag = shared, .offset = base, .last = false}, pattern(8, 1)));
  peer.send(segment(untagged{.op = 4, .invalidate = shared}));
  const octets bad = segment(untagged{.op = 4, .sequence = 2, .invalidate = 0x99000000}, pattern(5, 1));
  peer.send(bad);
  EXPECT_TRUE(target.valid);
  peer.send(segment(tagged{.stag = shared, .offset = base + 8}, pattern(8, 1)));
  EXPECT_FALSE(target.valid);
  peer.expect_terminate(terminate_segment(0x01, 0, bad));
  ASSERT_EQ(peer.side.user.receives.size(), 2u);
  EXPECT_EQ(peer.side.user.receives[0].result.status, wr_status::success);
  EXPECT_EQ(peer.side.user.receives[1].result.status, wr_status::remote_invalid_request);
}

// DDP-10, DDP-12, DDP-13, RDMAP-05, RDMAP-09, RDMAP-15: the sequence numbers of the queues do not touch each other.
TEST(Sequences, OfQueuesAreIndependent) {
  scripted_peer peer;
  region& own = peer.side.user.add(64);
  peer.open();
  for (std::uint32_t i = 1; i <= 20; ++i) {
    peer.side.send(own.element(0, 1));
    if (i % 2 == 0) peer.side.read(own.element(0, 1), {stag{1}, 0});
    for (const octets& u : peer.take()) {
      if (opcode_of(u) == 3) {
        EXPECT_EQ(u, segment(untagged{.sequence = i}, octets(1)));
      } else {
        EXPECT_EQ(octets(u.begin() + 10, u.begin() + 14), be32(i / 2));
      }
    }
    if (i % 2 == 0) peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(1)));
    ASSERT_EQ(peer.side.outstanding(), 0u) << i << " " << peer.side.engine.error().message();
  }
}

// RDMAP-57; field faults B203, B166: both ends send, write and read at once through a narrow link, and nobody waits for
// the other for ever.
TEST(Deadlock, NoneWithAllUnderWay) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    test_support::random_source random(seed);
    pair_options options;
    options.a.startup.ord = options.b.startup.ord = static_cast<std::uint16_t>(random.between(1, 4));
    engine_pair pair(options);
    pair.link.script_of(engine_pair::link_side::a).capacity = random.between(100, 20'000);
    pair.link.script_of(engine_pair::link_side::b).capacity = random.between(100, 20'000);
    pair.connect();
    struct end {
      stream_side* side;
      region *own, *lent, *into;
    };
    std::vector<end> ends;
    for (stream_side* s : {&pair.a, &pair.b})
      ends.push_back({s, &s->user.add(50'000), &s->user.add(50'000, {.remote_read = true, .remote_write = true}),
                      &s->user.add(50'000)});
    for (int i = 0; i < 60; ++i) {
      for (std::size_t e = 0; e < 2; ++e) {
        const end& mine = ends[e];
        const end& other = ends[1 - e];
        const std::size_t size = random.below(50'000);
        switch (random.below(3)) {
          case 0:
            other.side->user.post_receive(*other.into);
            mine.side->send(mine.own->element(0, size));
            break;
          case 1:
            mine.side->write(mine.own->element(0, size), {other.lent->key, other.lent->base});
            break;
          default:
            mine.side->read(mine.own->element(0, size), {other.lent->key, other.lent->base}, random.chance(30));
            break;
        }
      }
    }
    pair.settle();
    EXPECT_EQ(pair.a.count(wr_status::success), 60u) << pair.a.engine.error().message();
    EXPECT_EQ(pair.b.count(wr_status::success), 60u) << pair.b.engine.error().message();
  }
}

}  // namespace
}  // namespace iwarp::stream_test
