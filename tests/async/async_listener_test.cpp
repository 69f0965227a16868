// Requests: looked at, accepted, refused, given up.
#include <boost/asio/error.hpp>

#include "async_world.hpp"
#include "mpa/error.hpp"

namespace iwarp::verbs {
namespace {

using AsyncListener = AsyncTest;
IWARP_BOTH_MODES(AsyncListener);

TEST_P(AsyncListener, ARequestIsLookedAtAndAccepted) {
  auto listener = world.listen();
  auto client = world.make();
  auto server = world.make();
  const auto hello = pattern(50, 1), welcome = pattern(60, 2);
  outcome connected, accepted;
  connection_event seen;
  listener.async_next_request([&](const error_code& e, connection_event event) {
    EXPECT_FALSE(e) << e.message();
    seen = std::move(event);
    accept_options how;
    how.private_data = welcome;
    server.async_accept(seen.request, how, accepted.handler());
  });
  connect_options how;
  how.private_data = hello;
  client.async_connect(listener.local(), how, connected.handler());
  world.run_until([&] { return connected.calls && accepted.calls; });
  EXPECT_FALSE(connected.error) << connected.error.message();
  EXPECT_FALSE(accepted.error) << accepted.error.message();
  EXPECT_EQ(seen.private_data, hello);
  EXPECT_EQ(client.start_event().private_data, welcome);
  EXPECT_EQ(client.start_event().kind, event_kind::established);
  EXPECT_EQ(client.start_event().remote, listener.local());
  EXPECT_EQ(client.pair().state(), qp_state::rts);
  EXPECT_EQ(server.get_executor(), asio::any_io_executor(world.io.get_executor()));

  // One Request has one answer.
  auto another = world.make();
  outcome twice;
  another.async_accept(seen.request, twice.handler());
  world.run_until(twice);
  EXPECT_TRUE(twice.error == errc::no_such_request) << twice.error.message();
}

TEST_P(AsyncListener, ARequestIsRefused) {
  auto listener = world.listen();
  auto client = world.make();
  const auto why = pattern(30, 3);
  outcome connected;
  listener.async_next_request([&](const error_code& e, const connection_event& event) {
    EXPECT_FALSE(e) << e.message();
    EXPECT_TRUE(reject(event.request, why));
  });
  client.async_connect(listener.local(), connected.handler());
  world.run_until(connected);
  EXPECT_TRUE(to_std(connected.error) == mpa::errc::rejected) << connected.error.message();
  EXPECT_EQ(client.start_event().kind, event_kind::rejected);
  EXPECT_EQ(client.start_event().private_data, why);
}

TEST_P(AsyncListener, ARequestNobodyAnswersIsRefused) {
  auto listener = world.listen();
  auto client = world.make();
  outcome connected;
  listener.async_next_request([](const error_code&, const connection_event&) {});
  client.async_connect(listener.local(), connected.handler());
  world.run_until(connected);
  EXPECT_TRUE(to_std(connected.error) == mpa::errc::rejected) << connected.error.message();
}

TEST_P(AsyncListener, RequestsWaitForWhoeverAsks) {
  auto listener = world.listen();
  std::vector<async_connection> clients(5), servers;
  outcome connected;
  for (auto& client : clients) {
    client = world.make();
    client.async_connect(listener.local(), connected.handler());
  }
  world.settle();
  EXPECT_EQ(connected.calls, 0);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    listener.async_accept(world.pd, [&](const error_code& e, async_connection c) {
      EXPECT_FALSE(e) << e.message();
      servers.push_back(std::move(c));
    });
  }
  world.run_until([&] { return servers.size() == clients.size() && connected.calls == 5; });
  EXPECT_FALSE(connected.error) << connected.error.message();
}

TEST_P(AsyncListener, ClosingAbortsAndFreesThePort) {
  auto listener = world.listen();
  const endpoint where = listener.local();
  outcome waiting, accepting, late;
  listener.async_next_request([&](const error_code& e, const connection_event&) { waiting(e); });
  listener.async_accept(world.pd, [&](const error_code& e, const async_connection& c) {
    EXPECT_FALSE(static_cast<bool>(c));
    accepting(e);
  });
  world.settle();
  listener.close();
  EXPECT_EQ(waiting.calls + accepting.calls, 0) << "a handler ran inside close()";
  world.run_until([&] { return waiting.calls && accepting.calls; });
  EXPECT_EQ(waiting.error, asio::error::operation_aborted) << waiting.error.message();
  EXPECT_EQ(accepting.error, asio::error::operation_aborted) << accepting.error.message();
  listener.async_next_request([&](const error_code& e, const connection_event&) { late(e); });
  world.run_until(late);
  EXPECT_TRUE(late.error == errc::wrong_state) << late.error.message();
  EXPECT_EQ(listener.local(), where);
  EXPECT_TRUE(async_listener::create(world.io.get_executor(), world.stack, where));
}

TEST_P(AsyncListener, APortThatIsTaken) {
  auto listener = world.listen();
  const auto second = async_listener::create(world.io.get_executor(), world.stack, listener.local());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), errc::address_in_use) << second.error().message();
}

TEST_P(AsyncListener, WhatIsAcceptedOutlivesTheListener) {
  async_pair pair(world);
  pair.listener = {};
  buffer here(world.pd, 10), there(world.pd, 10);
  outcome received, sent;
  pair.server.async_receive(there.element(), received.handler());
  pair.client.async_send(here.element(), sent.handler());
  world.run_until([&] { return received.calls && sent.calls; });
  EXPECT_FALSE(received.error) << received.error.message();
}

}  // namespace
}  // namespace iwarp::verbs
