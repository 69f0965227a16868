// Progress: who serves connections when the application polls, stops polling, waits, or does nothing; many connections;
// contexts that end in any order and from any thread.
#include <dirent.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;
using verbs::opcode;
using verbs::status;

std::size_t entries(const char* folder) {
  std::size_t n = 0;
  DIR* const open = ::opendir(folder);
  while (::readdir(open) != nullptr) ++n;
  ::closedir(open);
  return n;
}
std::size_t descriptors() { return entries("/proc/self/fd"); }
std::size_t threads() { return entries("/proc/self/task"); }

/// Time until the peer's Read of one octet is answered while this side's application does nothing.
std::chrono::nanoseconds answer_time(raw_peer& peer, std::uint32_t sequence, verbs::remote_buffer from) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(peer.send_ulpdu(
      read_request(sequence, {.sink = stag{0x100}, .size = 1, .source = from.key, .source_offset = from.offset})));
  EXPECT_TRUE(peer.ulpdu());
  return std::chrono::steady_clock::now() - begin;
}

// A peer's one-sided operations go on when the application polled busily and just stopped: the background thread takes
// over within a few ms. In every phase of taking turns; with receives held and resumed on the way, which leaves a
// connection unarmed.
TEST(VerbsProgress, TheBackgroundTakesOverWhenPollingStops) {
  for (const unsigned domains : {1u, 2u}) {
    node n({.domains = domains});
    side s(n);
    raw_listener listener;
    ASSERT_TRUE(s.qp.connect(listener.local()));
    raw_peer peer(listener.accept());
    ASSERT_TRUE(peer.accept());
    s.expect(event_kind::established);
    std::uint32_t reads = 0, sends = 0;
    std::vector<std::chrono::nanoseconds> times;
    for (const int polls : {0, 1, 31, 32, 33, 100, 5000, 0, 5000, 40, 200}) {
      for (const bool hold : {false, true}) {
        SCOPED_TRACE(testing::Message() << polls << " polls" << (hold ? ", held before" : ""));
        if (hold) {
          peer.send_ulpdu(untagged(rdmap::opcode::send, ++sends, pattern(10, 1)));
          ASSERT_TRUE(wait_until([&] { return s.qp.held(); }));
          for (int i = 0; i < polls; ++i) s.poll();
          s.receive(sends, 0, 100);  // resumed on this thread
          s.expect(sends);
        } else {
          for (int i = 0; i < polls; ++i) s.poll();
        }
        times.push_back(answer_time(peer, ++reads, s.region.remote()));
        times.push_back(answer_time(peer, ++reads, s.region.remote()));
      }
    }
    std::ranges::sort(times);
    EXPECT_LT(times[times.size() / 2], 20ms);
    EXPECT_LT(times.back(), 2s) << "a connection was served by nobody";
  }
}

// Polled from several threads, which arm, wait, poll and stop in any order, while the peer reads all the time.
TEST(VerbsProgress, TurnsAreTakenByManyThreads) {
  node n;
  side s(n);
  auto second_cq = *verbs::completion_queue::create(n.context, 16);
  auto second = *verbs::queue_pair::create(n.pd, second_cq, second_cq, s.channel);
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  ASSERT_TRUE(second.connect(listener.local()));
  raw_peer idle(listener.accept());
  ASSERT_TRUE(idle.accept());
  EXPECT_EQ(s.event().kind, event_kind::established);
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t) {
    workers.emplace_back([&, t] {
      verbs::completion_queue& cq = t == 2 ? second_cq : s.cq;
      verbs::completion out;
      for (unsigned i = 0; !stop.load(); ++i) {
        for (unsigned k = 0; k < (i * 7 + static_cast<unsigned>(t)) % 60; ++k) (void)cq.poll({&out, 1});
        if (i % 3 == 0) cq.arm();
        if (i % 5 == 0) {
          pollfd wait{.fd = cq.descriptor(), .events = POLLIN, .revents = 0};
          ::poll(&wait, 1, 1);
        }
      }
    });
  }
  for (std::uint32_t i = 1; i <= 1000; ++i) ASSERT_LT(answer_time(peer, i, s.region.remote()), 5s) << i;
  stop.store(true);
  for (auto& w : workers) w.join();
}

// More connections than a poll reads by itself: the kernel is asked which are ready. Grows and shrinks across the
// limit.
class VerbsProgressMany : public testing::TestWithParam<setup> {};
INSTANTIATE_TEST_SUITE_P(Progress, VerbsProgressMany, testing::ValuesIn(all_setups()), setup_name);

TEST_P(VerbsProgressMany, ConnectionsAboveAndBelowTheLimitOfDirectPolling) {
  node here(GetParam()), there(GetParam());
  auto cq = *verbs::completion_queue::create(here.context, 4096);
  auto listening = *verbs::event_channel::create(there.context);
  auto listener = *verbs::listener::create(listening, GetParam().loopback());
  std::vector<std::unique_ptr<side>> clients, servers;
  const auto exchange = [&] {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      servers[i]->receive(i, 0, 64);
      clients[i]->receive(i, 0, 64);
      clients[i]->send(i, 0, 64);
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      servers[i]->expect(i);
      servers[i]->send(i, 0, 64);
      servers[i]->expect(i);
    }
    for (std::size_t i = clients.size(); i-- > 0;) {
      clients[i]->expect(i);
      clients[i]->expect(i);
    }
  };
  for (const std::size_t target : {7u, 8u, 9u, 20u, 9u, 8u, 3u, 12u}) {
    SCOPED_TRACE(target);
    while (clients.size() > target) {
      clients.erase(clients.begin());
      servers.erase(servers.begin());
    }
    while (clients.size() < target) {
      clients.push_back(std::make_unique<side>(here, side_options{.memory = 256}));
      servers.push_back(std::make_unique<side>(there, side_options{.memory = 256}));
      ASSERT_TRUE(clients.back()->qp.connect(listener.local()));
      const auto request = next_event(listening);
      ASSERT_TRUE(servers.back()->qp.accept(request.request));
      clients.back()->expect(event_kind::established);
      servers.back()->expect(event_kind::established);
    }
    for (int i = 0; i < 3; ++i) exchange();
  }
}

// A fast peer does not keep the others of its domain from the wire.
TEST(VerbsProgress, AFastPeerLeavesRoomForOthers) {
  node n;
  side busy(n), calm(n);
  raw_listener listener;
  ASSERT_TRUE(busy.qp.connect(listener.local()));
  raw_peer flood(listener.accept());
  ASSERT_TRUE(flood.accept());
  busy.expect(event_kind::established);
  ASSERT_TRUE(calm.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  calm.expect(event_kind::established);
  std::atomic<bool> stop{false};
  std::thread flooding([&] {
    const auto to = busy.region.remote();
    octets many;
    for (int i = 0; i < 8; ++i) {
      const octets one = fpdu(tagged(rdmap::opcode::write, to.key, to.offset, pattern(60000, 1)));
      many.insert(many.end(), one.begin(), one.end());
    }
    while (!stop.load() && flood.socket.send(many)) {
    }
  });
  ASSERT_TRUE(wait_until([&] { return busy.qp.counters().octets_in > (8 << 20); }));
  for (std::uint32_t i = 1; i <= 50; ++i) EXPECT_LT(answer_time(peer, i, calm.region.remote()), 2s);
  stop.store(true);
  flooding.join();
}

// Field faults B019, B062, B067, B143, B221: everything may be let go in any order, by any thread; what depends on
// something keeps it. No descriptor and no thread stays.
TEST(VerbsProgress, EverythingGoesInAnyOrderFromAnyThread) {
  { connected_pair warm_up; }
  const std::size_t fds = descriptors();
  const std::size_t tasks = threads();
  for (int order = 0; order < 24; ++order) {
    SCOPED_TRACE(order);
    pair_options options{.how = {.domains = 1 + static_cast<unsigned>(order) % 3}};
    auto pair = std::make_unique<connected_pair>(options);
    raw_peer half = raw_peer::connect(pair->listener.local());  // has said nothing
    raw_peer waiting = raw_peer::connect(pair->listener.local());
    waiting.send_request();
    auto request = std::make_optional(next_event(pair->listening));
    for (std::uint64_t i = 0; i < 10; ++i) pair->client.write(i, 0, 100000, pair->server.region.remote());
    // Handles that outlive their makers.
    auto kept_context = std::make_optional(pair->server_node.context);
    auto kept_cq = std::make_optional(pair->server.cq);
    auto kept_channel = std::make_optional(pair->listening);
    auto kept_qp = std::make_optional(std::move(pair->server.qp));
    auto kept_region = std::make_optional(std::move(pair->server.region));
    auto kept_memory = std::make_optional(std::move(pair->server.memory));
    auto kept_listener = std::make_optional(std::move(pair->listener));
    std::vector<std::function<void()>> steps = {[&] { pair.reset(); },         [&] { request.reset(); },
                                                [&] { kept_context.reset(); }, [&] { kept_cq.reset(); },
                                                [&] { kept_channel.reset(); }, [&] { kept_qp.reset(); },
                                                [&] { kept_region.reset(); },  [&] { kept_listener.reset(); }};
    std::rotate(steps.begin(), steps.begin() + order % 8, steps.end());
    if (order >= 8) std::swap(steps[2], steps[5]);
    if (order >= 16) std::reverse(steps.begin(), steps.end());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i % 2 == 0) {
        std::thread(steps[i]).join();
      } else {
        steps[i]();
      }
    }
    kept_memory.reset();
  }
  EXPECT_EQ(descriptors(), fds);
  EXPECT_EQ(threads(), tasks);
}

// A request that nobody answered keeps its context; answering it later works, or says that its peer has gone.
TEST(VerbsProgress, ARequestOutlivesEverythingElse) {
  std::optional<verbs::connection_event> request;
  raw_peer peer{raw_socket()};
  {
    node n;
    auto listening = *verbs::event_channel::create(n.context);
    auto listener = *verbs::listener::create(listening, setup{}.loopback());
    peer = raw_peer::connect(listener.local());
    peer.send_request();
    request = next_event(listening);
  }
  // The listener took its unanswered peers with it.
  EXPECT_EQ(verbs::reject(request->request).error(), verbs::errc::no_such_request);
  EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
  request.reset();
}

// Manual progress: nothing happens but when the application lets it; polling a queue serves its connections without the
// io_context.
TEST(VerbsProgress, ManualModeHasNoThreads) {
  const std::size_t tasks = threads();
  const setup manual{.name = "Manual", .mode = verbs::progress_mode::manual};
  connected_pair pair(manual);
  EXPECT_EQ(threads(), tasks);
  fill(pair.client.memory.bytes().first(100), 1);
  pair.client.write(1, 0, 100, pair.server.region.remote());
  // Posting has sent it; nobody has looked at it.
  EXPECT_FALSE(matches(pair.server.memory.bytes().first(100), 1));
  std::array<verbs::completion, 1> out;
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (!matches(pair.server.memory.bytes().first(100), 1) && std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(pair.server.cq.poll(out), 0u);
  }
  EXPECT_TRUE(matches(pair.server.memory.bytes().first(100), 1));
  // wait() runs the io_context.
  EXPECT_EQ(pair.server.channel.wait(5ms).error(), verbs::errc::timed_out);
  pair.client.qp.abort();
  const auto e = pair.server.channel.wait(5s);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, event_kind::disconnected);
}

// A peer that vanishes is noticed although this side holds it for want of a receive, and although the application polls
// all the time.
TEST(VerbsProgress, AHeldPeerThatVanishesIsNoticed) {
  for (const bool polling : {false, true}) {
    node n;
    side s(n);
    raw_listener listener;
    ASSERT_TRUE(s.qp.connect(listener.local()));
    raw_peer peer(listener.accept());
    ASSERT_TRUE(peer.accept());
    s.expect(event_kind::established);
    peer.send_ulpdu(untagged(rdmap::opcode::send, 1, pattern(10, 1)));
    ASSERT_TRUE(wait_until([&] { return s.qp.held(); }));
    if (polling) {
      for (int i = 0; i < 10000; ++i) s.poll();
    }
    peer.socket.reset();
    ASSERT_TRUE(wait_until([&] {
      if (polling) s.poll();
      return s.qp.state() == verbs::qp_state::error;
    }));
    EXPECT_EQ(s.expect(event_kind::disconnected).reason, mpa::errc::tcp_lost);
  }
}

// A held peer that ends in good order is heard to the end: FIN comes behind the message.
TEST(VerbsProgress, AHeldPeerThatClosesIsHeardFirst) {
  connected_pair pair;
  fill(pair.client.memory.bytes().first(50000), 2);
  pair.client.send(1, 0, 50000);
  pair.client.send(2, 0, 10);
  ASSERT_TRUE(wait_until([&] { return pair.server.qp.held(); }));
  ASSERT_TRUE(pair.client.qp.disconnect());
  pair.server.receive(1, 0, 50000);
  pair.server.expect(1);
  EXPECT_TRUE(matches(pair.server.memory.bytes().first(50000), 2));
  ASSERT_TRUE(wait_until([&] { return pair.server.qp.held(); }));
  pair.server.receive(2, 0, 50000);
  pair.server.expect(2);
  EXPECT_FALSE(pair.server.expect(event_kind::disconnected).reason);
  EXPECT_FALSE(pair.client.expect(event_kind::disconnected).reason);
}

// Field fault B224: fork with everything open: the child does not disturb the parent.
TEST(VerbsProgress, AForkedChildDisturbsNobody) {
  connected_pair pair;
  for (std::uint64_t i = 0; i < 20; ++i) {
    pair.client.write(i, 0, 100000, pair.server.region.remote());
    if (i % 5 == 0) {
      ASSERT_EQ(std::system("true"), 0);
    }
    pair.client.expect(i);
  }
}

// Counters grow, and say what was held.
TEST(VerbsProgress, CountersCount) {
  connected_pair pair;
  const auto before = pair.client.qp.counters();
  pair.client.write(1, 0, 100, pair.server.region.remote());
  pair.client.expect(1);
  const auto after = pair.client.qp.counters();
  EXPECT_EQ(after.fpdus_out, before.fpdus_out + 1);
  EXPECT_EQ(after.octets_out, before.octets_out + 120);  // 2 + 14 + 100 + CRC 4
  ASSERT_TRUE(wait_until([&] { return pair.server.qp.counters().octets_in == after.octets_out; }));
  EXPECT_EQ(pair.server.qp.counters().fpdus_in, after.fpdus_out);
}

}  // namespace
}  // namespace iwarp::verbs_test
