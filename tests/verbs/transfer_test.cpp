// Data transfer through the public API over real sockets, under every kind of progress: each operation, sizes and
// element lists, order, fences, slots of the send queue.
#include <array>
#include <cstring>

#include "tests/support/random.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::completion_kind;
using verbs::opcode;
using verbs::qp_state;
using verbs::status;

class VerbsTransfer : public testing::TestWithParam<setup> {};
INSTANTIATE_TEST_SUITE_P(Progress, VerbsTransfer, testing::ValuesIn(all_setups()), setup_name);

// RDMAP-31, RDMAP-34, RDMAP-50, VRB-33: both directions, sizes around everything that has an edge.
TEST_P(VerbsTransfer, SendsArriveWholeAndInOrder) {
  connected_pair pair(GetParam());
  constexpr std::array<std::uint32_t, 13> sizes = {0, 1, 3, 4, 5, 255, 256, 1439, 1440, 1441, 64768, 100000, 262144};
  for (side* from : {&pair.client, &pair.server}) {
    side& to = from == &pair.client ? pair.server : pair.client;
    for (const std::uint32_t size : sizes) {
      SCOPED_TRACE(size);
      fill(from->memory.bytes().first(size), size);
      std::ranges::fill(to.memory.bytes(), std::byte{0});
      to.receive(size, 0, 262144);
      from->send(size, 0, size);
      from->expect(size);
      const auto got = to.completion();
      EXPECT_EQ(got.id, size);
      EXPECT_EQ(got.status, status::success);
      EXPECT_EQ(got.kind, completion_kind::receive);
      EXPECT_EQ(got.length, size);
      EXPECT_FALSE(got.solicited);
      EXPECT_FALSE(got.with_invalidate);
      EXPECT_TRUE(matches(to.memory.bytes().first(size), size));
      EXPECT_TRUE(all_are(to.memory.bytes().subspan(size), std::byte{0}));
      EXPECT_TRUE(from->memory.intact() && to.memory.intact());
    }
  }
}

// RDMAP-10, RDMAP-13, RDMAP-53, VRB-22: Writes use no receive; a Send behind them finds them placed. Zero length needs
// no valid key on either side.
TEST_P(VerbsTransfer, WritesArePlacedBeforeTheSendBehindThem) {
  connected_pair pair(GetParam());
  side& client = pair.client;
  side& server = pair.server;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const auto size = static_cast<std::uint32_t>(1 + round * 12345 % 250000);
    fill(client.memory.bytes(), round);
    server.receive(round, 0, 0);
    client.write(1000 + round, 0, size, server.region.remote(7), false);
    client.send(2000 + round, {.op = opcode::rdma_write, .remote = {stag{0xdead}, ~0ull}});
    client.send(3000 + round, 0, 0);
    EXPECT_EQ(server.completion().id, round);
    EXPECT_TRUE(matches(server.memory.bytes().subspan(7, size), round)) << size;
    ASSERT_TRUE(client.settle());
    client.arrived.clear();
  }
  EXPECT_TRUE(server.memory.intact());
}

// RDMAP-17, -18, -20, -25, -27, -52, -54, VRB-22: Reads return what is there, also what was written just before; size 0
// needs no valid key. Both sides at once.
TEST_P(VerbsTransfer, ReadsReturnTheSourceBothWaysAtOnce) {
  connected_pair pair(GetParam());
  std::array<side*, 2> sides = {&pair.client, &pair.server};
  for (side* s : sides) fill(s->memory.bytes().first(128 * 1024), s == sides[0] ? 1 : 2);
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (side* s : sides) {
      side& other = s == sides[0] ? *sides[1] : *sides[0];
      const auto size = static_cast<std::uint32_t>(i * 3001 % 128000);
      s->read(i, 128 * 1024, size, size == 0 ? verbs::remote_buffer{stag{0x123400}, 5} : other.region.remote(0));
    }
  }
  for (side* s : sides) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto c = s->completion();
      EXPECT_EQ(c.id, i);
      EXPECT_EQ(c.status, status::success);
      EXPECT_EQ(c.length, i * 3001 % 128000);
    }
    EXPECT_TRUE(matches(s->memory.bytes().subspan(128 * 1024, 39 * 3001 % 128000), s == sides[0] ? 2 : 1));
    EXPECT_TRUE(s->memory.intact());
  }
  // Write, then read the same octets back.
  fill(pair.client.memory.bytes().first(5000), 99);
  pair.client.write(100, 0, 5000, pair.server.region.remote(50000));
  pair.client.read(101, 200000, 5000, pair.server.region.remote(50000));
  pair.client.expect(100);
  pair.client.expect(101);
  EXPECT_TRUE(matches(pair.client.memory.bytes().subspan(200000, 5000), 99));
}

// Field faults B026, B086, B089: lists of every length, with empty elements, inline or not.
TEST_P(VerbsTransfer, ElementListsAreGatheredAndScattered) {
  pair_options options{.how = GetParam()};
  options.client.qp = options.server.qp = {.max_send_sge = 64, .max_receive_sge = 64, .max_inline = 4096};
  connected_pair pair(options);
  test_support::random_source random(5);
  for (std::uint64_t round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const std::size_t count = 1 + round * 2 % 64;
    const bool inline_data = round % 3 == 0;
    std::vector<verbs::sge> from, to;
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto size = static_cast<std::uint32_t>(i % 5 == 3 ? 0 : random.between(1, inline_data ? 64 : 1500));
      from.push_back(pair.client.region.element(i * 2000, size));
      fill({pair.client.memory.data() + i * 2000, size}, i);
      if (inline_data) from.back().key = stag{0};  // not looked at
      total += size;
    }
    to = {pair.server.region.element(0, total / 2), pair.server.region.element(150000, 0),
          pair.server.region.element(100000, total - total / 2)};
    pair.server.ledger.received(round);
    ASSERT_TRUE(pair.server.qp.post_receive({.id = round, .elements = to}));
    pair.client.send(round, {.inline_data = inline_data, .elements = from});
    if (inline_data) std::ranges::fill(pair.client.memory.bytes(), std::byte{0xEE});  // copied when posted
    pair.client.expect(round);
    EXPECT_EQ(pair.server.completion().length, total);
    std::vector<std::byte> want(total), got(pair.server.memory.data(), pair.server.memory.data() + total / 2);
    got.insert(got.end(), pair.server.memory.data() + 100000, pair.server.memory.data() + 100000 + total - total / 2);
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      fill(std::span(want).subspan(at, from[i].length), i);
      at += from[i].length;
    }
    EXPECT_EQ(got, want);
  }
}

// VRB-13: posting a list stops at the first bad request; those before it are carried out. Limits of a queue pair.
TEST_P(VerbsTransfer, ListsStopAtTheFirstRefused) {
  pair_options options{.how = GetParam()};
  options.client.qp = {.max_send_requests = 8, .max_send_sge = 2, .max_inline = 16};
  connected_pair pair(options);
  side& client = pair.client;
  const verbs::sge one = client.region.element(0, 8);
  const std::array<verbs::sge, 3> three = {one, one, one};
  const std::array<verbs::sge, 1> long_one = {client.region.element(0, 17)};
  const auto refused = [&](verbs::send_request bad, std::error_code why) {
    std::array<verbs::send_request, 5> list;
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = {.id = i, .op = opcode::rdma_write, .elements = {&one, 1}, .remote = pair.server.region.remote()};
    }
    list[2] = bad;
    std::size_t posted = 99;
    const auto outcome = client.qp.post_send(list, posted);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error(), why);
    EXPECT_EQ(posted, 2u);
    client.ledger.sent(0, completion_kind::rdma_write, true);
    client.ledger.sent(1, completion_kind::rdma_write, true);
    EXPECT_TRUE(client.settle());
  };
  refused({.elements = three}, verbs::errc::invalid_sge_count);
  refused({.op = opcode::rdma_read, .elements = {three.data(), 2}}, verbs::errc::invalid_sge_count);
  refused({.inline_data = true, .elements = long_one}, verbs::errc::invalid_length);
  refused({.op = static_cast<opcode>(77)}, verbs::errc::invalid_opcode);
  const std::array<verbs::sge, 2> too_long = {verbs::sge{nullptr, ~0u, {}}, verbs::sge{nullptr, 1, {}}};
  refused({.elements = too_long}, verbs::errc::invalid_length);
  std::size_t posted = 0;
  const std::array<verbs::receive_request, 2> receives = {verbs::receive_request{.id = 1},
                                                          verbs::receive_request{.id = 2, .elements = three}};
  EXPECT_TRUE(client.qp.post_receive(receives, posted));
  EXPECT_EQ(posted, 2u);
  const std::array<verbs::sge, 5> five = {one, one, one, one, one};
  const auto bad = client.qp.post_receive({.id = 3, .elements = five});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), verbs::errc::invalid_sge_count);
}

// VRB-14, field fault B097: full exactly at the depth; a signaled completion frees what stands before it; unsignaled
// ones alone free nothing.
TEST_P(VerbsTransfer, SendQueueIsFullExactlyAtItsDepth) {
  constexpr std::uint32_t depth = 7;
  pair_options options{.how = GetParam()};
  options.client.qp = {.max_send_requests = depth};
  connected_pair pair(options);
  side& client = pair.client;
  const auto to = pair.server.region.remote();
  std::uint64_t id = 0;
  for (std::uint32_t round = 0; round < 40; ++round) {
    // Of the depth's requests every (round % depth)'th is signaled; then exactly so many can follow.
    const std::uint32_t last_signaled = round % depth;
    for (std::uint32_t i = 0; i < depth; ++i) client.write(id++, 0, 8, to, i == last_signaled);
    const auto full = client.try_send(id, {.op = opcode::rdma_write, .remote = to});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error(), verbs::errc::queue_full);
    client.expect(id - depth + last_signaled);
    for (std::uint32_t i = 0; i <= last_signaled; ++i) client.write(id++, 0, 8, to, true);
    EXPECT_EQ(client.try_send(id, {.op = opcode::rdma_write, .remote = to}).error(), verbs::errc::queue_full);
    for (std::uint32_t i = 0; i <= last_signaled; ++i) client.expect(id - 1 - last_signaled + i);
  }
  EXPECT_EQ(client.ledger.outstanding(), 0u);
}

// MPA-68: a responder may not send first, but need not wait for its peer's program to speak: the stack does.
TEST_P(VerbsTransfer, TheResponderMaySendFirst) {
  pair_options options{.how = GetParam(), .open = false};
  options.connect = {};
  connected_pair pair(options);
  pair.client.receive(1, 0, 100);
  pair.server.send(2, 0, 100);
  const auto got = pair.client.completion();
  EXPECT_EQ(got.id, 1u);
  EXPECT_EQ(got.status, verbs::status::success);
  EXPECT_EQ(got.length, 100u);
  EXPECT_EQ(pair.server.completion().id, 2u);
  EXPECT_EQ(pair.client.ledger.outstanding(), 0u) << "the Write of the stack completes nothing";
  EXPECT_EQ(pair.server.qp.counters().fpdus_in, 1u);
}

// All or none: a batch that does not fit, or has one that cannot be, leaves no trace.
TEST_P(VerbsTransfer, PostSendAllPostsNothingWhenOneIsRefused) {
  pair_options options{.how = GetParam()};
  options.client.qp = {.max_send_requests = 4};
  connected_pair pair(options);
  side& client = pair.client;
  const auto to = pair.server.region.remote();
  std::vector<verbs::send_request> batch(5, {.op = opcode::rdma_write, .signaled = true, .remote = to});
  for (std::uint64_t i = 0; i < batch.size(); ++i) batch[i].id = i;
  EXPECT_EQ(client.qp.post_send_all(batch).error(), verbs::errc::queue_full);
  const std::vector<verbs::sge> many(verbs::max_sge + 1);
  batch.pop_back();
  batch.back().elements = many;
  EXPECT_EQ(client.qp.post_send_all(batch).error(), verbs::errc::invalid_sge_count);
  client.poll();
  EXPECT_EQ(pair.server.qp.counters().fpdus_in, 1u) << "the fixture's own Write alone";
  // There is room for all four still.
  for (std::uint64_t i = 10; i < 14; ++i) client.write(i, 0, 8, to, true);
  for (std::uint64_t i = 10; i < 14; ++i) client.expect(i);
}

// Unsignaled requests fill the queue for good: nothing comes back for them.
TEST_P(VerbsTransfer, UnsignaledRequestsAloneFillTheQueue) {
  pair_options options{.how = GetParam()};
  options.client.qp = {.max_send_requests = 4};
  connected_pair pair(options);
  side& client = pair.client;
  // The fixture's own signaled Write has freed its slot.
  for (std::uint64_t i = 0; i < 4; ++i) client.write(i, 0, 8, pair.server.region.remote(), false);
  ASSERT_TRUE(wait_until([&] { return pair.server.qp.counters().fpdus_in == 5; }));
  client.poll();
  EXPECT_EQ(client.try_send(9, {.op = opcode::rdma_write}).error(), verbs::errc::queue_full);
  // A graceful end gives them back: the queue pair is as new for its next connection.
  pair.disconnect();
  pair.connect();
  for (std::uint64_t i = 10; i < 13; ++i) client.write(i, 0, 8, pair.server.region.remote(), false);
  client.write(13, 0, 8, pair.server.region.remote(), true);
  client.expect(13);
}

// VRB-14: a million rounds through small queues; nothing is lost, doubled or out of order, and no slot leaks.
TEST(VerbsTransferRounds, AMillionRequestsThroughSmallQueues) {
  pair_options options;
  options.client.qp = {.max_send_requests = 61};
  options.client.cq_depth = 61;
  connected_pair pair(options);
  side& client = pair.client;
  const verbs::sge element = client.region.element(0, 8);
  constexpr std::uint64_t rounds = 1'000'000;
  std::uint64_t posted = 0, expected = 0;
  const auto signaled = [](std::uint64_t id) { return id % 3 == 2 || id + 1 == rounds; };
  std::array<verbs::send_request, 16> list;
  std::array<verbs::completion, 16> out;
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (expected != rounds && std::chrono::steady_clock::now() < end) {
    std::size_t n = 0;
    for (; n < list.size() && posted + n < rounds; ++n) {
      list[n] = {.id = posted + n,
                 .op = opcode::rdma_write,
                 .signaled = signaled(posted + n),
                 .elements = {&element, 1},
                 .remote = pair.server.region.remote()};
    }
    std::size_t went = 0;
    if (n != 0) {
      const auto outcome = client.qp.post_send({list.data(), n}, went);
      if (!outcome) {
        ASSERT_EQ(outcome.error(), verbs::errc::queue_full);
      }
    }
    posted += went;
    const std::size_t got = client.cq.poll(out);
    for (std::size_t i = 0; i < got; ++i) {
      while (!signaled(expected)) ++expected;
      ASSERT_EQ(out[i].id, expected++);
      ASSERT_EQ(out[i].status, status::success);
    }
  }
  EXPECT_EQ(expected, rounds);
  EXPECT_FALSE(client.cq.overflowed());
}

// VRB-15, VRB-17, RDMAP-24, field faults B016, B155, B187: more Reads than ORD stall and do not fail; a fenced request
// waits for the Reads before it.
TEST_P(VerbsTransfer, ReadsBeyondOrdStallAndFencesWait) {
  pair_options options{.how = GetParam()};
  options.connect.ord = 1;
  connected_pair pair(options);
  side& client = pair.client;
  EXPECT_EQ(client.qp.ord(), 1);
  fill(pair.server.memory.bytes().first(100000), 3);
  pair.server.receive(1, 200000, 100);
  for (std::uint64_t i = 0; i < 5; ++i) client.read(i, 10000 * i, 10000, pair.server.region.remote(10000 * i));
  const verbs::sge element = client.region.element(40000, 100);  // what the last Read brings
  client.send(10, {.fence = true, .elements = {&element, 1}});
  client.read(11, 90000, 10000, pair.server.region.remote(0));
  for (std::uint64_t i = 0; i < 5; ++i) client.expect(i);
  client.expect(10);
  client.expect(11);
  EXPECT_TRUE(matches(client.memory.bytes().first(50000), 3));
  pair.server.expect(1);
  EXPECT_EQ(std::memcmp(pair.server.memory.data() + 200000, pair.server.memory.data() + 40000, 100), 0)
      << "the fenced Send went before the Read that it depends on";
}

// VRB-17, VRB-18: ORD 0 completes a Read in error and ends the connection.
TEST_P(VerbsTransfer, AReadWithoutOrdFails) {
  pair_options options{.how = GetParam()};
  options.connect.ord = 0;
  connected_pair pair(options);
  EXPECT_EQ(pair.client.qp.ord(), 0);
  pair.client.read(1, 0, 8, pair.server.region.remote());
  pair.client.expect(1, status::local_qp_operation);
  const auto here = pair.client.expect(verbs::event_kind::disconnected);
  ASSERT_TRUE(here.sent_terminate);
  EXPECT_EQ(here.sent_terminate->code, (rdmap::term_code{0, 0, 0}));
  const auto there = pair.server.expect(verbs::event_kind::disconnected);
  EXPECT_EQ(there.reason, rdmap::errc::terminated_by_peer);
}

// RDMAP-35, VRB-30, field faults B064, B122, B145: armed for solicited completions, a plain Send wakes nobody, a
// solicited one does, once; armed for the next one, any does.
TEST_P(VerbsTransfer, SolicitedEventsWakeWhoArmedForThem) {
  connected_pair pair(GetParam());
  side& client = pair.client;
  side& server = pair.server;
  for (std::uint64_t i = 0; i < 4; ++i) server.receive(i, 1000 * i, 1000);
  server.cq.arm(verbs::notify::solicited);
  client.send(1, 0, 10);
  ASSERT_TRUE(wait_until([&] { return server.qp.counters().fpdus_in == 2; }));
  EXPECT_FALSE(server.cq.acknowledge());
  const verbs::sge element = client.region.element(0, 10);
  client.send(2, {.solicited = true, .elements = {&element, 1}});
  EXPECT_TRUE(wait_until([&] { return server.cq.acknowledge(); }));
  client.send(3, {.solicited = true, .elements = {&element, 1}});
  ASSERT_TRUE(wait_until([&] { return server.qp.counters().fpdus_in == 4; }));
  EXPECT_FALSE(server.cq.acknowledge()) << "one shot";
  server.cq.arm(verbs::notify::next);
  server.cq.arm(verbs::notify::solicited);  // does not weaken it
  client.send(4, 0, 10);
  EXPECT_TRUE(wait_until([&] { return server.cq.acknowledge(); }));
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto c = server.completion();
    EXPECT_EQ(c.id, i);
    EXPECT_EQ(c.solicited, i == 1 || i == 2);
  }
  // An error is always solicited.
  server.receive(9, 0, 1000);
  server.cq.arm(verbs::notify::solicited);
  client.qp.abort();
  EXPECT_TRUE(wait_until([&] { return server.cq.acknowledge(); }));
}

// Markers and CRC in every combination; the responder's marker wish counts as well.
TEST(VerbsTransferFraming, EveryCombinationOfMarkersAndCrcCarriesData) {
  for (int bits = 0; bits < 16; ++bits) {
    SCOPED_TRACE(bits);
    pair_options options;
    options.connect.markers = (bits & 1) != 0;
    options.listen.markers = (bits & 2) != 0;
    options.connect.crc = (bits & 4) != 0;
    options.listen.crc = (bits & 8) != 0;
    connected_pair pair(options);
    const bool crc = (bits & 12) != 0;  // MPA-19: in force when either side asks
    EXPECT_EQ(pair.client_up.crc, crc);
    EXPECT_EQ(pair.server_up.crc, crc);
    fill(pair.client.memory.bytes(), 4);
    pair.server.receive(1, 0, 200000);
    pair.client.send(1, 0, 200000);
    pair.server.expect(1);
    EXPECT_TRUE(matches(pair.server.memory.bytes().first(200000), 4));
    pair.client.expect(1);
    pair.client.read(2, 0, 100000, pair.server.region.remote(0));
    pair.client.expect(2);
  }
}

// A peer that parses no large FPDUs: the cap on ULPDUs holds.
TEST(VerbsTransferFraming, TheCapOnUlpdusIsKept) {
  pair_options options;
  options.connect.max_ulpdu = 128;
  connected_pair pair(options);
  const auto before = pair.client.qp.counters().fpdus_out;
  pair.client.write(1, 0, 11400, pair.server.region.remote());  // 114 octets of payload each
  pair.client.expect(1);
  EXPECT_EQ(pair.client.qp.counters().fpdus_out - before, 100u);
}

}  // namespace
}  // namespace iwarp::verbs_test
