// Churn: threads that connect, transfer, end and destroy in every order, over shared contexts; afterwards no descriptor
// and no thread is left over.
#include <dirent.h>

#include <atomic>
#include <thread>

#include "tests/support/random.hpp"
#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;
using verbs::opcode;

std::size_t entries(const char* folder) {
  std::size_t n = 0;
  DIR* const open = ::opendir(folder);
  while (::readdir(open) != nullptr) ++n;
  ::closedir(open);
  return n;
}

struct churn_case {
  unsigned threads;
  unsigned domains;
};

class VerbsChurn : public testing::TestWithParam<churn_case> {};
INSTANTIATE_TEST_SUITE_P(Crowds, VerbsChurn,
                         testing::Values(churn_case{1, 1}, churn_case{4, 1}, churn_case{4, 2}, churn_case{16, 3}),
                         [](const auto& which) {
                           return "Threads" + std::to_string(which.param.threads) + "Domains" +
                                  std::to_string(which.param.domains);
                         });

/// One life of a connection.
void one_life(node& here, node& there, verbs::event_channel& listening, verbs::listener& listener,
              test_support::random_source& random) {
  auto client = std::make_unique<side>(here, side_options{.cq_depth = 256, .memory = 70'000});
  auto server = std::make_unique<side>(there, side_options{.cq_depth = 256, .memory = 70'000});
  ASSERT_TRUE(client->qp.connect(listener.local()));
  const auto stage = random.below(8);
  if (stage == 0) return;  // before TCP is there; the listener may still tell of it
  auto request = next_event(listening);
  if (stage == 1) {
    client.reset();
    if (random.below(2) == 0) (void)server->qp.accept(request.request);
    return;
  }
  if (stage == 2) {
    EXPECT_TRUE(verbs::reject(request.request));
    client->expect(event_kind::rejected);
    return;
  }
  ASSERT_TRUE(server->qp.accept(request.request));
  if (stage != 3) client->expect(event_kind::established);
  if (stage > 4) {
    for (std::uint64_t i = 0; i < 4; ++i) server->receive(i, 0, 1000);
    client->send(1, 0, 1000);
    client->write(2, 0, 60'000, server->region.remote());
    client->read(3, 0, 60'000, server->region.remote());
    if (stage > 5) {
      client->expect(1);
      client->expect(2);
      client->expect(3);
      server->expect(0);
    }
  }
  const auto end = [&](std::unique_ptr<side>& s) {
    switch (random.below(4)) {
      case 0:
        (void)s->qp.disconnect();
        break;
      case 1:
        s->qp.abort();
        break;
      case 2:
        s.reset();
        break;
      case 3:
        s->region = {};
        break;
    }
  };
  const bool client_first = random.below(2) == 0;
  end(client_first ? client : server);
  end(client_first ? server : client);
  if (random.below(2) == 0) server.reset();
}

// Field faults B022, B041, B061, B062, B083, B136, B154, B158.
TEST_P(VerbsChurn, LeavesNothingBehind) {
  const churn_case& c = GetParam();
  { connected_pair warm_up; }
  const std::size_t fds = entries("/proc/self/fd");
  const std::size_t tasks = entries("/proc/self/task");
  {
    node here({.domains = c.domains}), there({.domains = c.domains});
    const std::size_t busy_tasks = entries("/proc/self/task");
    std::atomic<int> lives{0};
    std::vector<std::thread> crowd;
    const auto end = std::chrono::steady_clock::now() + 1500ms;
    for (unsigned t = 0; t < c.threads; ++t) {
      crowd.emplace_back([&, t] {
        test_support::random_source random(t + 1);
        while (std::chrono::steady_clock::now() < end && !testing::Test::HasFailure()) {
          // A listener of its own each time: a Request that a life left unanswered goes with it.
          auto listening = *verbs::event_channel::create(there.context);
          auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
          one_life(here, there, listening, listener, random);
          ++lives;
        }
      });
    }
    for (auto& t : crowd) t.join();
    EXPECT_GT(lives.load(), 10);
    EXPECT_EQ(entries("/proc/self/task"), busy_tasks);
    // What lingers ends by itself.
    EXPECT_TRUE(wait_until([&] { return entries("/proc/self/fd") < fds + 50; }));
  }
  EXPECT_EQ(entries("/proc/self/fd"), fds);
  EXPECT_EQ(entries("/proc/self/task"), tasks);
}

// Field fault B013: Writes at full rate; the peer resets, or the queue pair is destroyed, at any moment.
TEST(VerbsChurnRaces, DestroyedUnderWritesAtFullRate) {
  node n({.domains = 2});
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  test_support::random_source random(3);
  for (int round = 0; round < 150; ++round) {
    auto target = std::make_unique<side>(n, side_options{.cq_depth = 16, .memory = 4096});
    raw_peer peer = raw_peer::connect(listener.local());
    peer.send_request();
    ASSERT_TRUE(target->qp.accept(next_event(listening).request));
    ASSERT_TRUE(peer.start_up_frame(mpa::frame_kind::reply));
    const auto where = target->region.remote();
    const octets unit = fpdu(tagged(rdmap::opcode::write, where.key, where.offset, pattern(4096, 1)));
    const auto resets_after = random.below(60);
    std::thread writer([&] {
      for (std::size_t i = 0; i < 400 && peer.socket.send(unit); ++i) {
        if (i == resets_after && round % 2 == 0) {
          peer.socket.reset();
          return;
        }
      }
    });
    const auto wait = random.below(40);
    (void)wait_until(
        [&] { return target->qp.counters().fpdus_in >= wait || target->qp.state() != verbs::qp_state::rts; }, 1s);
    target->qp = {};
    target->memory.forbid();
    target->memory.allow();
    target.reset();
    writer.join();
  }
}

// Ten thousand failed connects of one queue pair leave no descriptor (field fault B154), bounded in time.
TEST(VerbsChurnRaces, FailedConnectsLeaveNothing) {
  node n;
  side s(n, {.memory = 64});
  verbs::endpoint closed;
  { closed = raw_listener().local(); }
  ASSERT_TRUE(s.qp.connect(closed));  // makes what the domain keeps
  s.expect(event_kind::unreachable);
  const std::size_t fds = entries("/proc/self/fd");
  const auto end = std::chrono::steady_clock::now() + 1s;
  for (int i = 0; i < 10'000 && std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_TRUE(s.qp.connect(closed));
    s.expect(event_kind::unreachable);
  }
  EXPECT_LE(entries("/proc/self/fd"), fds + 2);
}

}  // namespace
}  // namespace iwarp::verbs_test
