// Completion queues and shared receive queues: overflow, resize, notification, several pollers, purge; protection
// domain, limit, waiters and survival of a shared receive queue.
#include <poll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;
using verbs::opcode;
using verbs::status;

bool readable(int fd, std::chrono::milliseconds limit = 0ms) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(limit.count())) == 1;
}

// VRB-29, field faults B100, B176: depths, and changing them with completions inside.
TEST(VerbsCompletionQueue, ResizeLosesNothing) {
  pair_options options;
  options.client.cq_depth = 16;
  connected_pair pair(options);
  side& client = pair.client;
  EXPECT_EQ(client.cq.depth(), 16u);
  std::uint64_t id = 0;
  // Let the ring's head stand anywhere.
  for (int turn = 0; turn < 20; ++turn) {
    SCOPED_TRACE(turn);
    for (int i = 0; i < 5; ++i) client.write(id++, 0, 8, pair.server.region.remote());
    ASSERT_TRUE(wait_until([&] { return client.qp.counters().fpdus_out == id + 1; }));
    EXPECT_EQ(client.cq.resize(4).error(), verbs::errc::invalid_depth) << "five are held";
    EXPECT_EQ(client.cq.depth(), 16u);
    EXPECT_TRUE(client.cq.resize(5));
    EXPECT_EQ(client.cq.depth(), 5u);
    client.expect(id - 5);
    EXPECT_TRUE(client.cq.resize(static_cast<std::uint32_t>(4 + turn)));
    for (std::uint64_t i = 4; i != 0; --i) client.expect(id - i);
    EXPECT_TRUE(client.cq.resize(16));
  }
  EXPECT_EQ(client.cq.resize(0).error(), verbs::errc::invalid_depth);
  EXPECT_EQ(client.cq.resize(4 * verbs::max_queue_depth + 1).error(), verbs::errc::invalid_depth);
  EXPECT_EQ(verbs::completion_queue::create(client.home.context, 0).error(), verbs::errc::invalid_depth);
  EXPECT_TRUE(verbs::completion_queue::create(client.home.context, 1));
}

// SEC-11, SEC-16, E38: a queue that overflows ends the queue pair that lost a completion, with Terminate 0/2/07;
// others, on the same queue or not, go on.
TEST(VerbsCompletionQueue, OverflowEndsItsQueuePairAlone) {
  node n;
  auto small = *verbs::completion_queue::create(n.context, 4);
  auto channel = *verbs::event_channel::create(n.context);
  side bystander(n);
  auto noisy = *verbs::queue_pair::create(n.pd, small, small, channel);
  auto quiet = *verbs::queue_pair::create(n.pd, small, small, channel);
  raw_listener listener;
  std::vector<raw_peer> peers;
  for (verbs::queue_pair* qp : {&noisy, &quiet, &bystander.qp}) {
    ASSERT_TRUE(qp->connect(listener.local()));
    peers.emplace_back(listener.accept());
    ASSERT_TRUE(peers.back().accept());
    EXPECT_EQ(next_event(qp == &bystander.qp ? bystander.channel : channel).kind, event_kind::established);
  }
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(noisy.post_send({.id = i, .op = opcode::rdma_write}));
  EXPECT_FALSE(small.overflowed());
  EXPECT_EQ(noisy.state(), verbs::qp_state::rts);
  ASSERT_TRUE(noisy.post_send({.id = 4, .op = opcode::rdma_write}));
  EXPECT_TRUE(small.overflowed());
  const auto e = next_event(channel);
  EXPECT_EQ(e.kind, event_kind::disconnected);
  EXPECT_EQ(e.qp_number, noisy.number());
  EXPECT_EQ(e.reason, rdmap::errc::cq_overflow);
  const auto t = peers[0].terminate();
  ASSERT_TRUE(t);
  EXPECT_EQ(t->code, (rdmap::term_code{0, 2, 7}));
  // The four that were there are still there.
  std::array<verbs::completion, 8> out;
  ASSERT_EQ(small.poll(out), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(out[i].id, i);
  // The other queue pair of that queue, and everything else, is undisturbed.
  ASSERT_TRUE(quiet.post_send({.id = 100, .op = opcode::rdma_write}));
  ASSERT_EQ(small.poll(out), 1u);
  EXPECT_EQ(out[0].id, 100u);
  EXPECT_EQ(out[0].qp_number, quiet.number());
  EXPECT_EQ(out[0].status, status::success);
  bystander.send(5, {.op = opcode::rdma_write});
  bystander.expect(5);
  EXPECT_EQ(quiet.state(), verbs::qp_state::rts);
}

// The inbound side: receives overflow the queue.
TEST(VerbsCompletionQueue, OverflowByReceives) {
  pair_options options;
  options.server.cq_depth = 2;
  connected_pair pair(options);
  for (std::uint64_t i = 0; i < 5; ++i) pair.server.receive(i, 0, 10);
  for (std::uint64_t i = 0; i < 3; ++i) pair.client.send(i, 0, 10);
  const auto e = pair.server.expect(event_kind::disconnected);
  EXPECT_EQ(e.reason, rdmap::errc::cq_overflow);
  EXPECT_EQ(pair.client.expect(event_kind::disconnected).received_terminate->code, (rdmap::term_code{0, 2, 7}));
  pair.server.expect(0);
  pair.server.expect(1);
}

// VRB-30, field faults B029, B064, B145: arm, poll, wait on the descriptor: thousands of wake-ups, none lost, none too
// many. The peer polls, or waits as well.
TEST(VerbsCompletionQueue, NoWakeUpIsLost) {
  for (const bool peer_polls : {true, false}) {
    connected_pair pair;
    constexpr std::uint64_t rounds = 2000;
    const auto wait = [](verbs::completion_queue& cq, verbs::completion& out) {
      for (;;) {
        cq.arm();
        if (cq.poll({&out, 1}) == 1) return true;
        if (!readable(cq.descriptor(), 20s)) return false;
        EXPECT_TRUE(cq.acknowledge());  // perhaps of a completion that an earlier poll has taken
      }
    };
    std::thread echo([&] {
      side& s = pair.server;
      verbs::completion c;
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const verbs::sge element = s.region.element(0, 64);
        if (i == 0) {
          ASSERT_TRUE(s.qp.post_receive({.id = 0, .elements = {&element, 1}}));
        }
        for (;;) {
          if (peer_polls) {
            while (s.cq.poll({&c, 1}) == 0) {
            }
          } else {
            ASSERT_TRUE(wait(s.cq, c)) << i;
          }
          ASSERT_EQ(c.status, status::success);
          if (c.kind == verbs::completion_kind::receive) break;
        }
        ASSERT_TRUE(s.qp.post_receive({.id = i + 1, .elements = {&element, 1}}));
        ASSERT_TRUE(s.qp.post_send({.id = i, .signaled = i % 16 == 15, .elements = {&element, 1}}));
      }
    });
    side& s = pair.client;
    const verbs::sge element = s.region.element(0, 64);
    verbs::completion c;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      EXPECT_TRUE(s.qp.post_receive({.id = i, .elements = {&element, 1}}));
      EXPECT_TRUE(s.qp.post_send({.id = i, .signaled = i % 16 == 15, .elements = {&element, 1}}));
      for (;;) {
        if (!wait(s.cq, c)) {
          ADD_FAILURE() << "a wake-up was lost in round " << i;
          pair.server.qp.abort();
          pair.client.qp.abort();
          echo.join();
          return;
        }
        if (c.kind == verbs::completion_kind::receive) break;
      }
      EXPECT_EQ(c.id, i);
    }
    echo.join();
  }
}

// Field faults B146, B119: several threads poll one queue; each completion goes to exactly one of them.
TEST(VerbsCompletionQueue, SeveralPollersShareAQueue) {
  pair_options options;
  options.client.qp = {.max_send_requests = 512};
  connected_pair pair(options);
  constexpr std::uint64_t count = 60'000;
  std::vector<std::atomic<int>> seen(count);
  std::atomic<std::uint64_t> total{0};
  std::vector<std::thread> pollers;
  const auto end = std::chrono::steady_clock::now() + 60s;
  for (int t = 0; t < 4; ++t) {
    pollers.emplace_back([&] {
      std::array<verbs::completion, 5> out;
      while (total.load() < count && std::chrono::steady_clock::now() < end) {
        const std::size_t n = pair.client.cq.poll(out);
        for (std::size_t i = 0; i < n; ++i) ++seen[out[i].id];
        total += n;
        if (n == 0) std::this_thread::yield();
      }
    });
  }
  for (std::uint64_t i = 0; i < count && std::chrono::steady_clock::now() < end;) {
    if (pair.client.qp.post_send({.id = i, .op = opcode::rdma_write})) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& t : pollers) t.join();
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(seen[i].load(), 1) << i;
}

// Completions of a destroyed queue pair vanish, those of others stay in their order.
TEST(VerbsCompletionQueue, DestructionTakesItsCompletionsAlone) {
  node n;
  auto cq = *verbs::completion_queue::create(n.context, 64);
  auto channel = *verbs::event_channel::create(n.context);
  std::vector<verbs::queue_pair> qps;
  raw_listener listener;
  std::vector<raw_peer> peers;
  for (int i = 0; i < 3; ++i) {
    qps.push_back(*verbs::queue_pair::create(n.pd, cq, cq, channel));
    ASSERT_TRUE(qps.back().connect(listener.local()));
    peers.emplace_back(listener.accept());
    ASSERT_TRUE(peers.back().accept());
    EXPECT_EQ(next_event(channel).kind, event_kind::established);
  }
  for (std::uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(qps[i % 3].post_send({.id = i, .op = opcode::rdma_write}));
  const auto gone = qps[1].number();
  qps[1] = {};
  std::array<verbs::completion, 64> out;
  ASSERT_EQ(cq.poll(out), 20u);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < 20; ++i, ++id) {
    if (id % 3 == 1) ++id;
    EXPECT_EQ(out[i].id, id);
    EXPECT_NE(out[i].qp_number, gone);
  }
}

// Shared receive queues ---------------------------------------------------------------------------------------------

struct shared_fixture {
  explicit shared_fixture(std::uint32_t depth, std::size_t connections, const verbs::protection_domain* own = nullptr,
                          unsigned domains = 1)
      : n({.domains = domains}),
        peers_node(),
        limits(*verbs::event_channel::create(n.context)),
        pd(own != nullptr ? *own : n.pd),
        queue(*verbs::shared_receive_queue::create(
            pd, {.max_requests = depth, .max_sge = 2, .channel = limits, .user_data = 77})),
        memory(1 << 20),
        region(*verbs::memory_region::create(pd, memory.bytes(), verbs::access::local_write)),
        listening(*verbs::event_channel::create(n.context)),
        listener(*verbs::listener::create(listening, setup{}.loopback())) {
    for (std::size_t i = 0; i < connections; ++i) connect();
  }
  void connect() {
    servers.push_back(std::make_unique<side>(n, side_options{.memory = 64, .receives = queue}));
    clients.push_back(std::make_unique<side>(peers_node));
    ASSERT_TRUE(clients.back()->qp.connect(listener.local()));
    const auto request = next_event(listening);
    ASSERT_TRUE(servers.back()->qp.accept(request.request));
    clients.back()->expect(event_kind::established);
    servers.back()->expect(event_kind::established);
  }
  void post(std::uint64_t id) {
    const verbs::sge element{memory.data() + id % 256 * 4096, 4096, region.key()};
    const auto r = queue.post({.id = id, .elements = {&element, 1}});
    EXPECT_TRUE(r) << r.error().message();
  }
  /// The next completion of a server, past its ledger, which knows no shared receives.
  verbs::completion next(std::size_t server) {
    std::deque<verbs::completion> got;
    EXPECT_TRUE(wait_until([&] {
      verbs::completion c;
      if (servers[server]->cq.poll({&c, 1}) == 1) got.push_back(c);
      return !got.empty();
    }));
    return got.empty() ? verbs::completion{.id = ~0ull} : got.front();
  }

  node n, peers_node;
  verbs::event_channel limits;
  verbs::protection_domain pd;
  verbs::shared_receive_queue queue;
  guarded_memory memory;
  verbs::memory_region region;
  verbs::event_channel listening;
  verbs::listener listener;
  std::vector<std::unique_ptr<side>> servers, clients;
};

// VRB-26: one receive per message, whoever sends; not through a queue pair; slots free when polled.
TEST(VerbsSharedReceive, FeedsSeveralQueuePairs) {
  shared_fixture f(8, 3);
  EXPECT_EQ(f.servers[0]->qp.post_receive({}).error(), verbs::errc::has_shared_receive_queue);
  for (std::uint64_t i = 0; i < 8; ++i) f.post(i);
  EXPECT_EQ(f.queue.posted(), 8u);
  EXPECT_EQ(f.queue.post({}).error(), verbs::errc::queue_full);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::size_t who = i % 3;
    fill(f.clients[who]->memory.bytes().first(100), i);
    f.clients[who]->send(i, 0, 100);
    const auto c = f.next(who);
    EXPECT_EQ(c.id, i);
    EXPECT_EQ(c.qp_number, f.servers[who]->qp.number());
    EXPECT_TRUE(matches({f.memory.data() + i % 256 * 4096, 100}, i));
    f.post(8 + i);
    EXPECT_EQ(f.queue.posted(), 8u);
    f.clients[who]->expect(i);
  }
  const verbs::sge e{};
  const std::array<verbs::sge, 3> three = {e, e, e};
  std::size_t posted = 9;
  EXPECT_EQ(f.queue.post({.elements = three}).error(), verbs::errc::invalid_sge_count);
  EXPECT_EQ(f.queue.post(std::span<const verbs::receive_request>{}, posted).has_value(), true);
  EXPECT_EQ(posted, 0u);
}

// VRB-26: elements are checked against the queue's protection domain, which need not be the queue pairs'. Theirs alone
// does not do.
TEST(VerbsSharedReceive, HasItsOwnProtectionDomain) {
  shared_fixture f(8, 0);
  const auto own = verbs::protection_domain::create(f.n.context);
  auto queue = *verbs::shared_receive_queue::create(own, {.max_requests = 4});
  guarded_memory m(8192);
  const auto region = *verbs::memory_region::create(own, m.bytes(), verbs::access::local_write);
  f.queue = queue;
  f.connect();
  const verbs::sge good = region.element(0, 4096);
  ASSERT_TRUE(queue.post({.id = 1, .elements = {&good, 1}}));
  f.clients[0]->send(1, 0, 100);
  EXPECT_EQ(f.next(0).status, status::success);
  // Of the queue pair's domain: not the queue's.
  const verbs::sge bad = f.servers[0]->region.element(0, 64);
  ASSERT_TRUE(queue.post({.id = 2, .elements = {&bad, 1}}));
  f.clients[0]->send(2, 0, 10);
  const auto c = f.next(0);
  EXPECT_EQ(c.id, 2u);
  EXPECT_EQ(c.status, status::local_protection);
  EXPECT_EQ(f.servers[0]->expect(event_kind::disconnected).sent_terminate->code, (rdmap::term_code{0, 0, 0}));
  // And the queue's domain is not good enough for the queue pair's own Reads.
  f.connect();
  const verbs::sge sink = region.element(0, 8);
  f.clients[1]->send(1, {.op = opcode::rdma_write});
  f.servers[1]->send(1, {.op = opcode::rdma_read, .elements = {&sink, 1}, .remote = f.clients[1]->region.remote()});
  f.servers[1]->expect(1, status::local_protection);
}

// VRB-27: the limit event fires once per arming, and at once when armed too late.
TEST(VerbsSharedReceive, TheLimitEventComesOncePerArming) {
  shared_fixture f(16, 1);
  for (std::uint64_t i = 0; i < 10; ++i) f.post(i);
  f.queue.arm_limit(8);
  const auto take = [&](std::uint64_t id) {
    f.clients[0]->send(id, 0, 10);
    f.clients[0]->expect(id);
    EXPECT_EQ(f.next(0).id, id);
  };
  take(0);
  take(1);  // 8 are left: not fewer than 8
  EXPECT_TRUE(stays_quiet(f.limits, 5ms));
  take(2);
  const auto e = next_event(f.limits);
  EXPECT_EQ(e.kind, event_kind::receive_limit);
  EXPECT_EQ(e.user_data, 77u);
  EXPECT_EQ(e.qp_number, 0u);
  take(3);
  take(4);
  EXPECT_TRUE(stays_quiet(f.limits, 5ms));
  f.queue.arm_limit(4);  // 5 are left
  take(5);
  EXPECT_TRUE(stays_quiet(f.limits, 5ms));
  take(6);
  EXPECT_EQ(next_event(f.limits).kind, event_kind::receive_limit);
  f.queue.arm_limit(10);  // 3 are left
  EXPECT_EQ(next_event(f.limits).kind, event_kind::receive_limit);
  f.queue.arm_limit(3);
  f.queue.arm_limit(0);
  take(7);
  EXPECT_TRUE(stays_quiet(f.limits, 5ms));
}

// VRB-28: an error of a queue pair flushes nothing of the queue, and the receive it held comes back.
TEST(VerbsSharedReceive, ErrorsLeaveItUsable) {
  shared_fixture f(8, 3);
  for (std::uint64_t i = 0; i < 5; ++i) f.post(i);
  f.clients[0]->write(1, 0, 10, {stag{0x4711}, 0});
  f.servers[0]->expect(event_kind::disconnected);
  f.servers[1]->qp.abort();
  f.servers[1]->expect(event_kind::disconnected);
  EXPECT_EQ(f.queue.posted(), 5u);
  f.servers[1]->qp = {};
  for (std::uint64_t i = 0; i < 5; ++i) {
    f.clients[2]->send(i, 0, 10);
    EXPECT_EQ(f.next(2).id, i);
  }
  // A message too long for it costs one receive and one connection.
  f.post(10);
  f.post(11);
  f.clients[2]->send(9, 0, 5000);
  const auto c = f.next(2);
  EXPECT_EQ(c.id, 10u);
  EXPECT_EQ(c.status, status::local_length);
  EXPECT_EQ(f.queue.posted(), 1u);
  f.connect();
  f.clients[3]->send(1, 0, 10);
  EXPECT_EQ(f.next(3).id, 11u);
  for (std::uint64_t i = 0; i < 8; ++i) f.post(i);  // all eight slots are there
}

// Peers that wait for a receive are served as receives come, whichever posts, over two domains; none is forgotten.
// RDMAP-57, field faults B140, B170, B217.
TEST(VerbsSharedReceive, HeldPeersGoOnWhenReceivesCome) {
  shared_fixture f(4, 5, nullptr, 2);
  for (std::uint64_t i = 0; i < 5; ++i) {
    f.clients[i]->send(1, 0, 100);
    f.clients[i]->send(2, 0, 100);
    ASSERT_TRUE(wait_until([&] { return f.servers[i]->qp.held(); }));
    EXPECT_EQ(f.servers[i]->qp.counters().receive_holds, 1u);
  }
  std::size_t served = 0;
  for (std::uint64_t i = 0; i < 10; ++i) {
    f.post(i);
    EXPECT_TRUE(wait_until([&] {
      for (auto& s : f.servers) {
        verbs::completion c;
        if (s->cq.poll({&c, 1}) == 1) {
          EXPECT_EQ(c.status, status::success);
          ++served;
        }
      }
      return served == i + 1;
    })) << i;
  }
  for (auto& s : f.servers) EXPECT_TRUE(wait_until([&] { return !s->qp.held(); }));
  // A waiter that is destroyed is forgotten.
  f.clients[0]->send(3, 0, 100);
  ASSERT_TRUE(wait_until([&] { return f.servers[0]->qp.held(); }));
  f.servers[0]->qp = {};
  f.post(100);
  EXPECT_EQ(f.queue.posted(), 1u);
}

// Posting threads and connections that come and go at once.
TEST(VerbsSharedReceive, PostersRaceWithDestruction) {
  shared_fixture f(64, 1, nullptr, 2);
  std::atomic<bool> stop{false};
  std::thread poster([&] {
    const verbs::sge element{f.memory.data(), 4096, f.region.key()};
    while (!stop.load()) {
      if (!f.queue.post({.elements = {&element, 1}})) std::this_thread::yield();
    }
  });
  for (int round = 0; round < 60; ++round) {
    f.connect();
    for (std::uint64_t i = 0; i < 20; ++i) f.clients.back()->send(i, 0, 100);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(round % 5); ++i) (void)f.next(f.servers.size() - 1);
    f.servers.pop_back();
    f.clients.pop_back();
  }
  stop.store(true);
  poster.join();
  // Nothing leaked: what is posted and what can be posted is the whole depth.
  const verbs::sge element{f.memory.data(), 4096, f.region.key()};
  while (f.queue.post({.elements = {&element, 1}})) {
  }
  EXPECT_EQ(f.queue.posted(), 64u);
}

// hold and terminate: the two answers to a Send without a receive (E12, DDP no buffer).
TEST(VerbsSharedReceive, ShortageTerminatesWhenAskedTo) {
  pair_options options;
  options.listen.shortage = verbs::no_receive::terminate;
  connected_pair pair(options);
  pair.client.send(1, 0, 10);
  const auto e = pair.client.expect(event_kind::disconnected);
  ASSERT_TRUE(e.received_terminate);
  EXPECT_EQ(e.received_terminate->code, (rdmap::term_code{1, 2, 2}));
  EXPECT_EQ(pair.server.expect(event_kind::disconnected).sent_terminate->code, (rdmap::term_code{1, 2, 2}));
}

}  // namespace
}  // namespace iwarp::verbs_test
