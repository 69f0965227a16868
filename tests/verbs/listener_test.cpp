// Listeners: back-pressure, wildcards, first messages, what happens when one goes.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;

// A listener takes no more than max_pending undecided peers; the others wait and come as there is room; over one and
// several domains, answered by threads of every kind.
TEST(VerbsListener, MaxPendingHoldsPeersBack) {
  for (const unsigned domains : {1u, 3u}) {
    SCOPED_TRACE(domains);
    constexpr std::size_t most = 3, peers = 24;
    node n({.domains = domains});
    auto listening = *verbs::event_channel::create(n.context);
    verbs::listen_options options;
    options.max_pending = most;
    auto listener = *verbs::listener::create(listening, setup{}.loopback(), options);
    std::vector<raw_peer> all;
    for (std::size_t i = 0; i < peers; ++i) {
      all.push_back(raw_peer::connect(listener.local()));
      all.back().send_request({}, pattern(1, i));
    }
    std::vector<verbs::connection_event> waiting;
    for (std::size_t i = 0; i < most; ++i) waiting.push_back(next_event(listening));
    EXPECT_TRUE(stays_quiet(listening, 10ms)) << "the fourth must wait";
    std::size_t answered = 0;
    std::vector<std::thread> answering;
    while (answered < peers && !testing::Test::HasFailure()) {
      if (waiting.empty()) waiting.push_back(next_event(listening));
      auto one = std::move(waiting.back());
      waiting.pop_back();
      ++answered;
      switch (answered % 3) {
        case 0:
          answering.emplace_back([request = one.request] { EXPECT_TRUE(verbs::reject(request)); });
          one = {};
          break;
        case 1:
          EXPECT_TRUE(verbs::reject(one.request));
          break;
        case 2:  // by doing nothing
          break;
      }
    }
    for (auto& t : answering) t.join();
    EXPECT_EQ(answered, peers);
    for (auto& peer : all) {
      const auto reply = peer.start_up_frame(mpa::frame_kind::reply);
      ASSERT_TRUE(reply);
      EXPECT_TRUE(reply->header.rejected);
    }
  }
}

// The listener goes while Requests wait and are answered: those are dropped, connections go on; its port is free again.
TEST(VerbsListener, DestroyedWithRequestsWaiting) {
  node n({.domains = 2});
  auto listening = *verbs::event_channel::create(n.context);
  std::optional<verbs::listener> listener(*verbs::listener::create(listening, setup{}.loopback(), {}));
  const auto where = listener->local();
  EXPECT_EQ(verbs::listener::create(listening, where).error(), verbs::errc::address_in_use);
  side established(n), client(n), late(n);
  ASSERT_TRUE(client.qp.connect(where));
  ASSERT_TRUE(established.qp.accept(next_event(listening).request));
  client.expect(event_kind::established);
  established.expect(event_kind::established);
  raw_peer decided = raw_peer::connect(where), waiting = raw_peer::connect(where), silent = raw_peer::connect(where);
  decided.send_request();
  const auto request = next_event(listening);
  waiting.send_request();
  const auto other = next_event(listening);
  std::thread answer([&] { (void)late.qp.accept(request.request); });
  listener.reset();
  answer.join();
  EXPECT_EQ(late.qp.accept(other.request).error(), verbs::errc::no_such_request);
  EXPECT_NE(waiting.socket.wait_end(), raw_socket::ending::none);
  EXPECT_NE(silent.socket.wait_end(), raw_socket::ending::none);
  client.write(1, 0, 100, established.region.remote());
  client.expect(1);
  for (int i = 0; i < 50; ++i) {  // field faults B059, B218
    auto again = verbs::listener::create(listening, where);
    ASSERT_TRUE(again) << again.error().message();
  }
}

// Field fault B023: wildcards take what comes, IPv4 and IPv6.
TEST(VerbsListener, WildcardsAndBothFamilies) {
  node n;
  auto listening = *verbs::event_channel::create(n.context);
  namespace ip = boost::asio::ip;
  for (const bool only : {false, true}) {
    verbs::listen_options options;
    options.v6_only = only;
    auto listener = *verbs::listener::create(listening, {ip::address_v6::any(), 0}, options);
    for (const bool v6 : {true, false}) {
      side client(n), server(n);
      const verbs::endpoint to = v6 ? verbs::endpoint{ip::address_v6::loopback(), listener.local().port()}
                                    : verbs::endpoint{ip::address_v4::loopback(), listener.local().port()};
      ASSERT_TRUE(client.qp.connect(to));
      if (only && !v6) {
        EXPECT_EQ(client.expect(event_kind::unreachable).reason, std::errc::connection_refused);
        continue;
      }
      ASSERT_TRUE(server.qp.accept(next_event(listening).request));
      client.expect(event_kind::established);
    }
  }
}

// Field fault B070: data in the same moment as the connection; thousands of connections, none of it lost.
// Socket activation: the port was the program's before, and a peer that came meanwhile waits in its backlog.
TEST(VerbsListener, TakesOverASocket) {
  node n;
  auto listening = *verbs::event_channel::create(n.context);
  verbs::endpoint where = setup{}.loopback();
  verbs::listen_options options;
  options.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(options.socket, 0);
  ASSERT_EQ(::bind(options.socket, where.data(), static_cast<socklen_t>(where.size())), 0);
  ASSERT_EQ(::listen(options.socket, 5), 0);
  socklen_t size = static_cast<socklen_t>(where.capacity());
  ASSERT_EQ(::getsockname(options.socket, where.data(), &size), 0);
  auto early = raw_peer::connect(where);
  const auto listener = verbs::listener::create(listening, where, options);
  ASSERT_TRUE(listener) << listener.error().message();
  EXPECT_EQ(listener->local(), where);
  early.send_request();
  EXPECT_EQ(next_event(listening).kind, event_kind::connect_request);

  // Also when it fails.
  options.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  options.max_pending = 0;
  EXPECT_EQ(verbs::listener::create(listening, where, options).error(), verbs::errc::invalid_argument);
  EXPECT_EQ(::fcntl(options.socket, F_GETFD), -1);
}

TEST(VerbsListener, TheFirstMessageIsNeverLost) {
  node n({.domains = 2});
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  side client(n, {.memory = 256}), server(n, {.memory = 256});
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    server.receive(i, 0, 64);  // before accept
    ASSERT_TRUE(client.qp.connect(listener.local()));
    ASSERT_TRUE(server.qp.accept(next_event(listening).request));
    client.expect(event_kind::established);
    client.send(i, 0, 64);
    server.expect(i);
    client.expect(i);
    server.expect(event_kind::established);
    ASSERT_TRUE(client.qp.disconnect());
    EXPECT_FALSE(client.expect(event_kind::disconnected).reason);
    EXPECT_FALSE(server.expect(event_kind::disconnected).reason);
  }
}

// Event channels: descriptor readable exactly while events wait.
TEST(VerbsListener, TheChannelsDescriptorFollowsItsEvents) {
  node n;
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  const auto readable = [&] {
    pollfd wait{.fd = listening.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) == 1;
  };
  EXPECT_FALSE(readable());
  EXPECT_EQ(listening.wait(1ms).error(), verbs::errc::timed_out);
  std::vector<raw_peer> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(raw_peer::connect(listener.local()));
    peers.back().send_request();
  }
  std::vector<verbs::connection_event> kept;
  for (int i = 0; i < 3; ++i) {
    pollfd wait{.fd = listening.descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 20'000), 1);
    const auto e = listening.wait(0ns);
    ASSERT_TRUE(e);
    kept.push_back(*e);
  }
  EXPECT_FALSE(readable());
}

}  // namespace
}  // namespace iwarp::verbs_test
