// Two streams move data in every combination that start-up can agree on, in every size that matters, over links that
// cut their octets anywhere. Each transfer is compared octet by octet; guards and the ledger are checked by the
// consumer.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/rdmap/engine_pair.hpp"
#include "tests/support/random.hpp"

namespace iwarp::stream_test {
namespace {

using rdmap::operation;
using rdmap::wr_status;
using test_support::random_source;

constexpr region_rights readable{.remote_read = true};
constexpr region_rights writable{.remote_write = true};

// All that one side needs to send to the other, receive from it, write to it and read from it.
struct flow {
  flow(stream_side& sender, stream_side& other, std::size_t size)
      : from(sender),
        to(other),
        source(from.user.add(size)),
        sink(from.user.add(size)),
        target(to.user.add(size, writable)),
        readable_source(to.user.add(size, readable)),
        receive(to.user.add(size)) {}

  // Posts a Write, a Send and a Read of `size` octets.
  void post(std::size_t size, std::uint64_t seed) {
    fill(source.bytes().first(size), seed);
    fill(readable_source.bytes().first(size), seed + 1);
    to.user.post_receive({receive.element(0, size)});
    to.engine.receive_posted(to.now);
    from.write(source.element(0, size), {target.key, target.base});
    from.send(source.element(0, size));
    from.read(sink.element(0, size), {readable_source.key, readable_source.base});
  }
  void check(std::size_t size) {
    EXPECT_TRUE(target.copy(0, size) == source.copy(0, size)) << "Write of " << size;
    EXPECT_TRUE(receive.copy(0, size) == source.copy(0, size)) << "Send of " << size;
    EXPECT_TRUE(sink.copy(0, size) == readable_source.copy(0, size)) << "Read of " << size;
    ASSERT_FALSE(to.user.receives.empty());
    EXPECT_EQ(to.user.receives.back().result.size, size);
    EXPECT_EQ(to.user.receives.back().result.status, wr_status::success);
  }

  stream_side& from;
  stream_side& to;
  region &source, &sink, &target, &readable_source, &receive;
};

// Both directions at once, one size after the other.
void exchange_data(engine_pair& pair, const std::vector<std::size_t>& sizes) {
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  flow there(pair.a, pair.b, std::max<std::size_t>(largest, 1));
  flow back(pair.b, pair.a, std::max<std::size_t>(largest, 1));
  std::uint64_t seed = 1;
  for (const std::size_t size : sizes) {
    there.post(size, seed += 2);
    back.post(size, seed += 2);
    pair.settle();
    there.check(size);
    back.check(size);
    ASSERT_EQ(pair.a.outstanding() + pair.b.outstanding(), 0u) << "size " << size;
  }
  for (const auto* side : {&pair.a, &pair.b}) EXPECT_EQ(side->count(wr_status::success), side->posted());
  EXPECT_EQ(pair.a.engine.state(), rdmap::stream_state::open) << pair.a.engine.error().message();
  EXPECT_EQ(pair.b.engine.state(), rdmap::stream_state::open) << pair.b.engine.error().message();
}

enum class start_kind { revision_1, revision_2, rtr_send, rtr_write, rtr_read };

void set_start(pair_options& options, start_kind kind) {
  auto& own = options.a.startup;
  own.revision = kind == start_kind::revision_1 ? 1 : 2;
  own.peer_to_peer = kind >= start_kind::rtr_send;
  if (own.peer_to_peer) {
    own.rtr = {.send = kind == start_kind::rtr_send,
               .write = kind == start_kind::rtr_write,
               .read = kind == start_kind::rtr_read};
  }
}

// MPA-19, MPA-32, MPA-33, MPA-83, MPA-105: every agreement of CRC, markers each way, revision and RTR carries traffic.
class EveryAgreement : public testing::TestWithParam<std::tuple<bool, bool, bool, start_kind>> {};

TEST_P(EveryAgreement, CarriesTrafficBothWays) {
  const auto [crc, a_markers, b_markers, kind] = GetParam();
  pair_options options;
  options.a.startup.crc = options.b.startup.crc = crc;
  options.a.startup.markers = a_markers;
  options.b.startup.markers = b_markers;
  set_start(options, kind);
  engine_pair pair(options);
  pair.connect();
  EXPECT_EQ(pair.a.engine.agreement().crc, crc);
  EXPECT_EQ(pair.a.engine.agreement().rx_markers, a_markers);
  EXPECT_EQ(pair.a.engine.agreement().tx_markers, b_markers);
  // MPA-08: revision is known above.
  EXPECT_EQ(pair.b.engine.agreement().revision, kind == start_kind::revision_1 ? 1 : 2);
  exchange_data(pair, {0, 1, 64, 1000, 1449, 5000, 20'000});
}

INSTANTIATE_TEST_SUITE_P(Pairs, EveryAgreement,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool(),
                                          testing::Values(start_kind::revision_1, start_kind::revision_2,
                                                          start_kind::rtr_send, start_kind::rtr_write,
                                                          start_kind::rtr_read)));

// MPA-32, MPA-33: C in one frame alone turns CRC on for both.
TEST(Agreement, CrcIsOnWhenEitherSideAsks) {
  for (const bool a_asks : {false, true}) {
    pair_options options;
    options.a.startup.crc = a_asks;
    options.b.startup.crc = !a_asks;
    engine_pair pair(options);
    pair.connect();
    EXPECT_TRUE(pair.a.engine.agreement().crc);
    EXPECT_TRUE(pair.b.engine.agreement().crc);
    exchange_data(pair, {100, 5000});
  }
}

// MPA-01, MPA-04, MPA-05, MPA-41, DDP-14: sizes around every limit at each EMSS. The 70000 of field fault B049 too.
class EveryEmss : public testing::TestWithParam<std::uint32_t> {};

TEST_P(EveryEmss, CarriesEverySize) {
  pair_options options;
  options.emss = GetParam();
  engine_pair pair(options);
  pair.connect();
  const std::size_t m = mpa::mulpdu(options.emss, false);
  exchange_data(pair, {0,     1,     2,      3,      4,      63,     64,     1447,   1448,       1449,       4096,
                       65535, 65536, m - 19, m - 18, m - 17, m - 15, m - 14, m - 13, 2 * m - 36, 2 * m - 35, 1 << 20});
}
INSTANTIATE_TEST_SUITE_P(Pairs, EveryEmss, testing::Values(120, 536, 1448, 1460, 8948, 32741, 65483, 70'000, 131'072));

TEST(Sizes, SixteenMebibytes) {
  engine_pair pair;
  pair.connect();
  exchange_data(pair, {std::size_t{16} << 20});
}

// Field fault B139: a range of sizes, one by one.
TEST(Sizes, OneByOneAroundAThousand) {
  pair_options options;
  options.a.startup.markers = options.b.startup.markers = true;
  engine_pair pair(options);
  pair.connect();
  std::vector<std::size_t> sizes;
  for (std::size_t size = 900; size <= 1100; ++size) sizes.push_back(size);
  exchange_data(pair, sizes);
}

// MPA-41, MPA-44: any cut of the stream.
TEST(Cuts, OneOctetPerRead) {
  for (const bool markers : {false, true}) {
    pair_options options;
    options.read_limit = 1;
    options.a.startup.markers = options.b.startup.markers = markers;
    engine_pair pair(options);
    pair.connect();
    exchange_data(pair, {0, 1, 3, 600, 3000});
  }
}

TEST(Cuts, RandomReadsAndANarrowLink) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_source random(seed);
    pair_options options;
    options.emss = static_cast<std::uint32_t>(random.between(200, 9000));
    options.a.startup.markers = random.chance(50);
    options.b.startup.markers = random.chance(50);
    engine_pair pair(options);
    for (const auto side : {engine_pair::link_side::a, engine_pair::link_side::b}) {
      auto& script = pair.link.script_of(side);
      script.capacity = random.between(1, 5000);
      script.read_limit_at = [&random](std::uint64_t) { return random.between(1, 4000); };
      script.latency = std::chrono::microseconds(random.between(0, 50));
    }
    pair.connect();
    exchange_data(pair, {0, 77, 5000, 70'000});
  }
}

// Scatter/gather lists of every length up to the limit, empty elements among them (field fault B026).
TEST(Elements, ListsOfEveryLengthWithEmptyOnes) {
  engine_pair pair;
  pair.connect();
  region& from = pair.a.user.add(64 * 1024);
  region& target = pair.b.user.add(64 * 1024, writable);
  region& into = pair.b.user.add(64 * 1024);
  random_source random(7);
  for (std::size_t count = 1; count <= 16; ++count) {
    fill(from.bytes(), count);
    std::vector<rdmap::sge> gather;
    std::vector<rdmap::sge> scatter;
    octets expected;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = random.chance(30) ? 0 : random.between(1, 2500);
      const std::size_t at = random.below(from.size() - length);
      gather.push_back(from.element(at, length));
      expected = std::move(expected) + from.copy(at, length);
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = i + 1 == count ? into.size() - at : random.chance(30) ? 0 : random.between(1, 2500);
      scatter.push_back(into.element(at, length));
      at += length;
    }
    pair.b.user.post_receive(scatter);
    pair.b.engine.receive_posted(pair.b.now);
    pair.a.post({.op = operation::send}, gather);
    pair.a.post({.op = operation::write, .remote = target.key, .remote_offset = target.base}, gather);
    pair.settle();
    EXPECT_TRUE(into.copy(0, expected.size()) == expected) << count << " elements";
    EXPECT_TRUE(target.copy(0, expected.size()) == expected) << count << " elements";
  }
  EXPECT_EQ(pair.a.count(wr_status::success), 32u);
}

TEST(Elements, NoneAtAll) {  // Field fault B116; RDMAP-34
  engine_pair pair;
  pair.connect();
  for (const auto op : {operation::send, operation::send_solicited, operation::write, operation::read}) {
    if (op <= operation::send_solicited) pair.b.user.post_receive(std::vector<rdmap::sge>{});
    pair.a.post({.op = op}, {});
  }
  pair.settle();
  EXPECT_EQ(pair.a.count(wr_status::success), 4u);
  ASSERT_EQ(pair.b.user.receives.size(), 2u);
  EXPECT_EQ(pair.b.user.receives[0].result.size, 0u);
}

TEST(Inline, PayloadIsTakenFromTheRing) {
  engine_pair pair;
  pair.connect();
  region& target = pair.b.user.add(512, writable);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{511}, std::size_t{512}}) {
    region& into = pair.b.user.add(std::max<std::size_t>(size, 1));
    pair.b.user.post_receive(into);
    const octets data = pattern(size, size + 3);
    pair.a.post_inline({.op = operation::send}, data);
    pair.a.post_inline({.op = operation::write, .remote = target.key, .remote_offset = target.base}, data);
    pair.settle();
    EXPECT_TRUE(into.copy(0, size) == data);
    EXPECT_TRUE(target.copy(0, size) == data);
  }
}

// RDMAP-31, RDMAP-32, RDMAP-35, RDMAP-36, RDMAP-38: each kind of Send arrives as what it is, in order.
TEST(Sends, EveryKindInOrder) {
  engine_pair pair;
  pair.connect();
  region& source = pair.a.user.add(100);
  region& into = pair.b.user.add(400);
  region& lent = pair.b.user.add(64, writable);
  region& lent_too = pair.b.user.add(64, readable);
  for (std::size_t i = 0; i < 4; ++i) pair.b.user.post_receive({into.element(i * 100, 100)});
  pair.a.send(source.element(0, 10));
  pair.a.send(source.element(0, 20), operation::send_invalidate, lent.key);
  pair.a.send(source.element(0, 30), operation::send_solicited);
  pair.a.send(source.element(0, 40), operation::send_solicited_invalidate, lent_too.key);
  pair.settle();
  const auto& done = pair.b.user.receives;
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[0].result.op, rdmap::opcode::send);
  EXPECT_EQ(done[1].result.op, rdmap::opcode::send_invalidate);
  EXPECT_EQ(done[1].result.invalidated, lent.key);
  EXPECT_EQ(done[2].result.op, rdmap::opcode::send_solicited);
  EXPECT_EQ(done[3].result.op, rdmap::opcode::send_solicited_invalidate);
  EXPECT_EQ(done[3].result.invalidated, lent_too.key);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(done[i].result.size, 10 * (i + 1));
  EXPECT_FALSE(lent.valid);
  EXPECT_FALSE(lent_too.valid);
  // It is of no more use: the next Write through it ends the stream.
  pair.a.write(source.element(0, 8), {lent.key, lent.base});
  pair.settle();
  EXPECT_EQ(pair.b.engine.error(), ddp::errc::tagged_invalid_stag);
  EXPECT_EQ(pair.a.engine.error(), rdmap::errc::terminated_by_peer);
}

// VRB-16: a local invalidate takes effect before what is posted behind it, and after what is in front.
TEST(LocalInvalidate, TakesEffectInPlace) {
  engine_pair pair;
  pair.connect();
  region& source = pair.a.user.add(5000);
  region& target = pair.b.user.add(5000, writable);
  fill(source.bytes(), 4);
  pair.a.write(source.element(0, 5000), {target.key, target.base});
  pair.a.post({.op = operation::local_invalidate, .invalidate = source.key}, {});
  pair.a.write(source.element(0, 1), {target.key, target.base});
  pair.settle();
  EXPECT_TRUE(target.copy() == source.copy());
  // What is framed goes out before the Terminate, but whether it still counts as done is not promised.
  EXPECT_EQ(pair.a.user.sends, (std::vector{wr_status::flushed, wr_status::flushed, wr_status::local_protection}));
  EXPECT_EQ(pair.a.engine.error(), rdmap::errc::local_catastrophic);
  EXPECT_EQ(pair.b.engine.received_terminate()->code, (rdmap::term_code{0, 0, 0}));
}

// 128 outstanding requests of a mix of kinds, again and again through a ring of 128 slots.
TEST(Depth, AFullRingGoesRoundManyTimes) {
  pair_options options;
  options.sizes.depth = 128;
  options.a.startup.ird = options.b.startup.ird = 8;
  options.a.startup.ord = options.b.startup.ord = 8;
  engine_pair pair(options);
  pair.connect();
  region& source = pair.a.user.add(4096);
  region& sink = pair.a.user.add(4096);
  region& target = pair.b.user.add(4096, {.remote_read = true, .remote_write = true});
  region& into = pair.b.user.add(4096);
  random_source random(11);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 128; ++i) {
      const std::size_t size = random.below(4097);
      switch (random.below(3)) {
        case 0:
          pair.b.user.post_receive(into);
          pair.a.send(source.element(0, size));
          break;
        case 1:
          pair.a.write(source.element(0, size), {target.key, target.base});
          break;
        default:
          pair.a.read(sink.element(0, size), {target.key, target.base}, random.chance(20));
          break;
      }
    }
    pair.settle();
    ASSERT_EQ(pair.a.outstanding(), 0u);
  }
  EXPECT_EQ(pair.a.count(wr_status::success), 20u * 128);
  EXPECT_EQ(pair.b.user.receives.size(), pair.b.user.receives_posted());
}

// MPA-90, MPA-91, MPA-92, RDMAP-23, RDMAP-24: Reads far beyond ORD with every pair of depths; VRB-17: they wait.
class EveryDepth : public testing::TestWithParam<std::tuple<std::uint16_t, std::uint16_t>> {};

TEST_P(EveryDepth, ReadsBeyondOrdWait) {
  const auto [a_depth, b_depth] = GetParam();
  pair_options options;
  options.a.startup.ird = options.a.startup.ord = a_depth;
  options.b.startup.ird = options.b.startup.ord = b_depth;
  engine_pair pair(options);
  pair.connect();
  EXPECT_LE(pair.a.engine.agreement().ord, pair.b.engine.agreement().ird);
  EXPECT_LE(pair.b.engine.agreement().ord, pair.a.engine.agreement().ird);
  region& sink_a = pair.a.user.add(3000);
  region& sink_b = pair.b.user.add(3000);
  region& lent_a = pair.a.user.add(3000, readable);
  region& lent_b = pair.b.user.add(3000, readable);
  fill(lent_a.bytes(), 1);
  fill(lent_b.bytes(), 2);
  for (std::size_t i = 0; i < 200; ++i) {
    pair.a.read(sink_a.element(i * 10, 10), {lent_b.key, lent_b.base + i * 10});
    pair.b.read(sink_b.element(i * 10, 10), {lent_a.key, lent_a.base + i * 10});
  }
  pair.settle();
  EXPECT_EQ(pair.a.count(wr_status::success), 200u) << pair.a.engine.error().message();
  EXPECT_EQ(pair.b.count(wr_status::success), 200u) << pair.b.engine.error().message();
  EXPECT_TRUE(sink_a.copy(0, 2000) == lent_b.copy(0, 2000));
  EXPECT_TRUE(sink_b.copy(0, 2000) == lent_a.copy(0, 2000));
}
INSTANTIATE_TEST_SUITE_P(Pairs, EveryDepth, testing::Combine(testing::Values(1, 16, 128), testing::Values(1, 16, 128)));

// RDMAP-53, RDMAP-54: a Send tells that the Writes before it are placed; a Read returns what was written before it.
TEST(Ordering, WriteThenReadAndSend) {
  engine_pair pair;
  pair.connect();
  region& source = pair.a.user.add(10'000);
  region& sink = pair.a.user.add(10'000);
  region& target = pair.b.user.add(10'000, {.remote_read = true, .remote_write = true});
  region& into = pair.b.user.add(8);
  for (std::uint64_t round = 0; round < 50; ++round) {
    fill(source.bytes(), round);
    pair.b.user.post_receive(into);
    pair.a.write(source.element(0, 10'000), {target.key, target.base});
    pair.a.read(sink.element(0, 10'000), {target.key, target.base});
    pair.a.send(source.element(0, 8));
    pair.settle();
    ASSERT_TRUE(target.copy() == source.copy());
    ASSERT_TRUE(sink.copy() == source.copy());
  }
}

// MPA-22, DDP-10: positions and sequence numbers over a long life.
TEST(LongLife, ManyMessagesWithMarkers) {
  pair_options options;
  options.a.startup.markers = options.b.startup.markers = true;
  engine_pair pair(options);
  pair.connect();
  region& source = pair.a.user.add(64);
  region& target = pair.b.user.add(64, writable);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 200; ++i) pair.a.write(source.element(0, 64), {target.key, target.base});
    pair.settle();
  }
  EXPECT_EQ(pair.a.count(wr_status::success), 20'000u);
}

// Unsignaled is the consumer's business: the stream tells of every request all the same, so that slots are freed.
TEST(Unsignaled, IsReportedLikeAnyOther) {  // VRB-14
  engine_pair pair;
  pair.connect();
  region& source = pair.a.user.add(64);
  region& target = pair.b.user.add(64, writable);
  for (int i = 0; i < 50; ++i) {
    pair.a.post({.op = operation::write, .signaled = i % 10 == 9, .remote = target.key, .remote_offset = target.base},
                {source.element(0, 64)});
  }
  pair.settle();
  EXPECT_EQ(pair.a.count(wr_status::success), 50u);
}

}  // namespace
}  // namespace iwarp::stream_test
