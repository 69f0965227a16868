// Transfers, limits and ends of a connection, by callbacks and futures.
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "async_world.hpp"
#include "mpa/error.hpp"
#include "rdmap/error.hpp"

namespace iwarp::verbs {
namespace {

using AsyncConnection = AsyncTest;
IWARP_BOTH_MODES(AsyncConnection);

TEST_P(AsyncConnection, CallbacksCarryEveryOperation) {
  async_pair pair(world);
  buffer here(world.pd, 300'000), there(world.pd, 300'000);
  here.fill(1);

  outcome received, sent;
  pair.server.async_receive(there.element(0, 5000), received.handler());
  pair.client.async_send(here.element(100, 4000), sent.handler());
  EXPECT_EQ(sent.calls, 0) << "a handler ran inside the function that began its operation";
  world.run_until([&] { return received.calls != 0 && sent.calls != 0; });
  EXPECT_FALSE(sent.error) << sent.error.message();
  EXPECT_FALSE(received.error) << received.error.message();
  EXPECT_EQ(sent.size, 4000u);
  EXPECT_EQ(received.size, 4000u);
  EXPECT_TRUE(std::equal(there.octets.begin(), there.octets.begin() + 4000, here.octets.begin() + 100));

  // A Write is not announced to the peer: the Send behind it is.
  outcome written, told, notice;
  pair.server.async_receive(std::span<const sge>{}, told.handler());
  pair.client.async_write(here.element(), there.remote(), written.handler());
  pair.client.async_send(std::span<const sge>{}, notice.handler());
  world.run_until([&] { return written.calls != 0 && told.calls != 0 && notice.calls != 0; });
  EXPECT_FALSE(written.error) << written.error.message();
  EXPECT_EQ(written.size, here.octets.size());
  EXPECT_EQ(told.size, 0u);
  EXPECT_EQ(there.octets, here.octets);

  there.fill(2);
  outcome read;
  pair.client.async_read(here.element(), there.remote(), read.handler());
  world.run_until(read);
  EXPECT_FALSE(read.error) << read.error.message();
  EXPECT_EQ(read.size, here.octets.size());
  EXPECT_EQ(here.octets, there.octets);

  outcome over, ended;
  pair.server.async_wait_end(ended.handler());
  pair.client.async_disconnect(over.handler());
  world.run_until([&] { return over.calls != 0 && ended.calls != 0; });
  EXPECT_FALSE(over.error) << over.error.message();
  EXPECT_FALSE(ended.error) << ended.error.message();
  for (const outcome* one : {&received, &sent, &written, &told, &notice, &read, &over, &ended})
    EXPECT_EQ(one->calls, 1);
}

TEST_P(AsyncConnection, FuturesWorkFromAnotherThread) {
  buffer here(world.pd, 10'000), there(world.pd, 10'000);
  here.fill(3);
  auto listener = world.listen();
  auto client = world.make();
  auto work = asio::make_work_guard(world.io);
  std::thread runner([&] { world.io.run(); });
  {
    auto accepted = listener.async_accept(world.pd, asio::use_future);
    client.async_connect(listener.local(), asio::use_future).get();
    async_connection server = accepted.get();
    auto received = server.async_receive(there.element(), asio::use_future);
    EXPECT_EQ(client.async_send(here.element(), asio::use_future).get(), here.octets.size());
    EXPECT_EQ(received.get(), here.octets.size());
    EXPECT_EQ(there.octets, here.octets);
    remote_buffer nowhere = there.remote();
    nowhere.key.value ^= 0x5a;
    EXPECT_THROW(client.async_read(here.element(), nowhere, asio::use_future).get(), boost::system::system_error);
  }
  client.close();
  work.reset();
  listener.close();
  world.io.stop();  // with manual progress the stack's own waits are work as well
  runner.join();
}

TEST_P(AsyncConnection, ElementsAreGatheredAndScattered) {
  async_pair pair(world);
  buffer here(world.pd, 1000), there(world.pd, 1000);
  here.fill(4);
  outcome received, sent;
  {
    // Gone before anything completes: the elements were copied.
    const std::vector<sge> from{here.element(0, 10), here.element(500, 300), here.element(100, 1)};
    const std::vector<sge> to{there.element(900, 100), there.element(0, 900)};
    pair.server.async_receive(to, received.handler());
    pair.client.async_send(from, sent.handler());
  }
  world.run_until(received);
  EXPECT_FALSE(received.error) << received.error.message();
  EXPECT_EQ(received.size, 311u);
  std::vector<std::byte> want(here.octets.begin(), here.octets.begin() + 10);
  want.insert(want.end(), here.octets.begin() + 500, here.octets.begin() + 800);
  want.push_back(here.octets[100]);
  std::vector<std::byte> got(there.octets.begin() + 900, there.octets.end());
  got.insert(got.end(), there.octets.begin(), there.octets.begin() + 211);
  EXPECT_EQ(got, want);
  world.run_until(sent);
}

TEST_P(AsyncConnection, ManyOperationsCompleteInOrder) {
  constexpr std::size_t count = 500;
  const queue_pair_options deep{.max_send_requests = count, .max_receive_requests = count};
  async_pair pair(world, deep, deep);
  buffer here(world.pd, count), there(world.pd, count);
  here.fill(5);
  std::vector<std::size_t> sent, received;
  for (std::size_t i = 0; i < count; ++i) {
    pair.server.async_receive(there.element(i, 1), [&, i](const error_code& e, std::size_t n) {
      EXPECT_FALSE(e) << e.message();
      EXPECT_EQ(n, 1u);
      received.push_back(i);
    });
  }
  for (std::size_t i = 0; i < count; ++i) {
    pair.client.async_send(here.element(i, 1), [&, i](const error_code& e, std::size_t n) {
      EXPECT_FALSE(e) << e.message();
      EXPECT_EQ(n, 1u);
      sent.push_back(i);
    });
  }
  world.run_until([&] { return sent.size() == count && received.size() == count; });
  EXPECT_TRUE(std::is_sorted(sent.begin(), sent.end()));
  EXPECT_TRUE(std::is_sorted(received.begin(), received.end()));
  EXPECT_EQ(there.octets, here.octets);
}

TEST_P(AsyncConnection, OneOperationTooManyIsQueueFull) {
  const queue_pair_options shallow{.max_send_requests = 2, .max_receive_requests = 3};
  async_pair pair(world, shallow, shallow);
  buffer here(world.pd, 100);
  outcome waiting, refused;
  for (int i = 0; i < 3; ++i) pair.client.async_receive(here.element(), waiting.handler());
  pair.client.async_receive(here.element(), refused.handler());
  EXPECT_EQ(refused.calls, 0) << "a handler ran inside the function that began its operation";
  world.run_until(refused);
  EXPECT_TRUE(refused.error == errc::queue_full) << refused.error.message();
  EXPECT_EQ(refused.size, 0u);
  EXPECT_EQ(waiting.calls, 0);

  // Reads need the peer's answer, so two of them fill the send queue for certain while no handler runs.
  outcome reads, third;
  pair.client.async_read(here.element(), here.remote(), reads.handler());
  pair.client.async_read(here.element(), here.remote(), reads.handler());
  pair.client.async_read(here.element(), here.remote(), third.handler());
  world.run_until([&] { return reads.calls == 2 && third.calls == 1; });
  EXPECT_FALSE(reads.error) << reads.error.message();
  if (GetParam() == progress_mode::manual) {
    EXPECT_TRUE(third.error == errc::queue_full) << third.error.message();
  }
  // The places are free again.
  outcome again;
  pair.client.async_read(here.element(), here.remote(), again.handler());
  world.run_until(again);
  EXPECT_FALSE(again.error) << again.error.message();
}

TEST_P(AsyncConnection, RequestsThatCannotBePosted) {
  auto alone = world.make();
  buffer here(world.pd, 100);
  outcome sent, over;
  alone.async_send(here.element(), sent.handler());
  alone.async_disconnect(over.handler());
  world.run_until([&] { return sent.calls != 0 && over.calls != 0; });
  EXPECT_TRUE(sent.error == errc::not_connected) << sent.error.message();
  EXPECT_TRUE(over.error == errc::not_connected) << over.error.message();

  async_pair pair(world);
  outcome elements, inline_data;
  const std::vector<sge> five(5, here.element());
  pair.client.async_send(five, elements.handler());
  const sge big = here.element();
  const std::vector<sge> three{big, big, big};
  pair.client.async_request({.op = opcode::send, .inline_data = true, .elements = three}, inline_data.handler());
  world.run_until([&] { return elements.calls != 0 && inline_data.calls != 0; });
  EXPECT_TRUE(elements.error == errc::invalid_sge_count) << elements.error.message();
  EXPECT_TRUE(inline_data.error == errc::invalid_length) << inline_data.error.message();
}

TEST_P(AsyncConnection, LocalKeyThatIsWrong) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  sge wrong = here.element();
  wrong.key.value ^= 1;
  outcome sent;
  pair.client.async_send(wrong, sent.handler());
  world.run_until(sent);
  EXPECT_TRUE(sent.error == status::local_protection) << sent.error.message();
  EXPECT_EQ(sent.size, 0u);
}

TEST_P(AsyncConnection, RemoteKeyThatIsWrong) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  outcome read, waiting, ended, peer_waiting;
  pair.server.async_receive(there.element(), peer_waiting.handler());
  pair.client.async_receive(here.element(), waiting.handler());
  pair.client.async_wait_end(ended.handler());
  remote_buffer wrong = there.remote();
  wrong.key.value ^= 1;
  pair.client.async_read(here.element(), wrong, read.handler());
  world.run_until([&] { return read.calls && waiting.calls && ended.calls && peer_waiting.calls; });
  EXPECT_TRUE(read.error == status::remote_access) << read.error.message();
  // What the end overtook says why the connection ended.
  EXPECT_TRUE(to_std(waiting.error) == rdmap::errc::terminated_by_peer) << waiting.error.message();
  EXPECT_TRUE(to_std(ended.error) == rdmap::errc::terminated_by_peer) << ended.error.message();
  EXPECT_TRUE(to_std(peer_waiting.error) == rdmap::errc::source_invalid_stag) << peer_waiting.error.message();
}

TEST_P(AsyncConnection, PeerDisconnectsIsEndOfFile) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  outcome waiting, over;
  pair.client.async_receive(here.element(), waiting.handler());
  pair.server.async_disconnect(over.handler());
  world.run_until([&] { return waiting.calls && over.calls; });
  EXPECT_EQ(waiting.error, asio::error::eof) << waiting.error.message();
  EXPECT_FALSE(over.error) << over.error.message();
}

TEST_P(AsyncConnection, OwnDisconnectAbortsReceives) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  outcome waiting, over, after;
  pair.client.async_receive(here.element(), waiting.handler());
  pair.client.async_disconnect(over.handler());
  world.run_until([&] { return waiting.calls && over.calls; });
  EXPECT_EQ(waiting.error, asio::error::operation_aborted) << waiting.error.message();
  EXPECT_FALSE(over.error) << over.error.message();
  // Over already: says so at once.
  pair.client.async_disconnect(after.handler());
  world.run_until(after);
  EXPECT_FALSE(after.error) << after.error.message();
}

TEST_P(AsyncConnection, PeerDies) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  outcome waiting, ended, unread;
  pair.client.async_receive(here.element(), waiting.handler());
  pair.client.async_wait_end(ended.handler());
  pair.server = {};  // with a reset
  world.run_until([&] { return waiting.calls && ended.calls; });
  EXPECT_TRUE(waiting.error);
  EXPECT_NE(waiting.error, asio::error::eof);
  EXPECT_NE(waiting.error, asio::error::operation_aborted);
  EXPECT_EQ(ended.error, waiting.error) << ended.error.message();
  // Operations begun afterwards are told the same.
  outcome late_send, late_receive;
  pair.client.async_send(here.element(), late_send.handler());
  pair.client.async_receive(here.element(), late_receive.handler());
  world.run_until([&] { return late_send.calls && late_receive.calls; });
  EXPECT_EQ(late_send.error, waiting.error) << late_send.error.message();
  EXPECT_EQ(late_receive.error, waiting.error) << late_receive.error.message();
}

TEST_P(AsyncConnection, NobodyListens) {
  auto listener = world.listen();
  const endpoint gone = listener.local();
  listener.close();
  auto client = world.make();
  outcome connected, again;
  client.async_connect(gone, connected.handler());
  client.async_connect(gone, again.handler());
  world.run_until([&] { return connected.calls && again.calls; });
  EXPECT_EQ(connected.error, asio::error::connection_refused) << connected.error.message();
  EXPECT_TRUE(again.error == errc::already_connected) << again.error.message();
}

TEST_P(AsyncConnection, ConnectsAgainAfterEveryKindOfEnd) {
  auto listener = world.listen();
  auto client = world.make();
  buffer here(world.pd, 100), there(world.pd, 100);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    async_connection server;
    outcome connected, accepted;
    listener.async_accept(world.pd, [&](const error_code& e, async_connection c) {
      server = std::move(c);
      accepted(e);
    });
    client.async_connect(listener.local(), connected.handler());
    world.run_until([&] { return connected.calls && accepted.calls; });
    ASSERT_FALSE(connected.error) << connected.error.message();
    ASSERT_FALSE(accepted.error) << accepted.error.message();
    outcome received, sent, ended;
    server.async_receive(there.element(), received.handler());
    client.async_send(here.element(), sent.handler());
    client.async_wait_end(ended.handler());
    world.run_until([&] { return received.calls && sent.calls; });
    ASSERT_FALSE(received.error) << received.error.message();
    ASSERT_FALSE(sent.error) << sent.error.message();
    outcome over;
    switch (round % 3) {
      case 0:
        client.async_disconnect(over.handler());
        break;
      case 1:
        server.async_disconnect(over.handler());
        break;
      default:
        server.close();
    }
    world.run_until(ended);
    EXPECT_EQ(static_cast<bool>(ended.error), round % 3 == 2) << ended.error.message();
  }
}

TEST_P(AsyncConnection, ReceiveSaysWhatWasInvalidated) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100), window(world.pd, 100);
  completion got;
  outcome received, sent;
  pair.server.async_receive_message(there.element(), [&](const error_code& e, const completion& c) {
    got = c;
    received(e);
  });
  const sge one = here.element();
  pair.client.async_request(
      {.op = opcode::send_with_invalidate, .elements = {&one, 1}, .invalidate = window.region.key()}, sent.handler());
  world.run_until([&] { return received.calls && sent.calls; });
  EXPECT_FALSE(received.error) << received.error.message();
  EXPECT_TRUE(got.with_invalidate);
  EXPECT_EQ(got.invalidated, window.region.key());
  EXPECT_EQ(got.length, 100u);
  EXPECT_FALSE(window.region.valid());
}

TEST_P(AsyncConnection, OptionsThatAreRefused) {
  const auto refused = [&](const queue_pair_options& options) {
    const auto made = async_connection::create(world.io.get_executor(), world.stack, world.pd, options);
    return made ? std::error_code{} : made.error();
  };
  EXPECT_EQ(refused({.max_send_requests = 0}), errc::invalid_depth);
  EXPECT_EQ(refused({.max_send_requests = max_queue_depth + 1}), errc::invalid_depth);
  EXPECT_EQ(refused({.max_send_requests = ~0u, .max_receive_requests = ~0u}), errc::invalid_depth);
  EXPECT_EQ(refused({.max_send_sge = 0}), errc::invalid_sge_count);
  auto client = world.make();
  outcome private_data, depth;
  const std::vector<std::byte> much(600);
  client.async_connect({asio::ip::address_v4::loopback(), 1}, {{}, much}, private_data.handler());
  connect_options deep;
  deep.ord = 0xffff;
  client.async_connect({asio::ip::address_v4::loopback(), 1}, deep, depth.handler());
  world.run_until([&] { return private_data.calls && depth.calls; });
  EXPECT_TRUE(private_data.error == errc::invalid_private_data) << private_data.error.message();
  EXPECT_TRUE(depth.error == errc::invalid_read_depth) << depth.error.message();
}

TEST(AsyncConnectionWork, AnIdleConnectionKeepsNobodyRunning) {
  async_world world(progress_mode::automatic);
  async_pair pair(world);
  world.settle();
  world.io.restart();
  // Returns although both ends are connected: no operation is under way.
  EXPECT_LE(world.io.run_for(std::chrono::seconds(10)), 4u);
  EXPECT_TRUE(world.io.stopped());
}

}  // namespace
}  // namespace iwarp::verbs
