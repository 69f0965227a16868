// co_await of every operation; exceptions and redirect_error.
#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async_world.hpp"

namespace iwarp::verbs {
namespace {

using asio::use_awaitable;
using AsyncCoroutine = AsyncTest;
IWARP_BOTH_MODES(AsyncCoroutine);

/// Runs coroutines side by side until all have ended; rethrows the first exception.
template <class... Coroutines>
void run(async_world& world, Coroutines... coroutines) {
  std::size_t ended = 0;
  std::exception_ptr failed;
  const auto end = [&](const std::exception_ptr& e) {
    ++ended;
    if (e && !failed) failed = e;
  };
  (asio::co_spawn(world.io, std::move(coroutines), end), ...);
  world.run_until([&] { return ended == sizeof...(coroutines) || failed != nullptr; });
  if (failed) std::rethrow_exception(failed);
}

TEST_P(AsyncCoroutine, EveryOperation) {
  auto listener = world.listen();
  buffer here(world.pd, 100'000), there(world.pd, 100'000);
  here.fill(1);

  const auto server = [&]() -> asio::awaitable<void> {
    async_connection c = co_await listener.async_accept(world.pd, use_awaitable);
    EXPECT_EQ(co_await c.async_receive(there.element(0, 1000), use_awaitable), 1000u);
    EXPECT_TRUE(std::equal(there.octets.begin(), there.octets.begin() + 1000, here.octets.begin()));
    // Written by the peer once its next message is here.
    EXPECT_EQ(co_await c.async_receive(std::span<const sge>{}, use_awaitable), 0u);
    EXPECT_EQ(there.octets, here.octets);
    there.fill(2);
    EXPECT_EQ(co_await c.async_send(std::span<const sge>{}, use_awaitable), 0u);
    co_await c.async_wait_end(use_awaitable);
  };
  const auto client = [&]() -> asio::awaitable<void> {
    async_connection c = world.make();
    co_await c.async_connect(listener.local(), use_awaitable);
    EXPECT_EQ(co_await c.async_send(here.element(0, 1000), use_awaitable), 1000u);
    EXPECT_EQ(co_await c.async_write(here.element(), there.remote(), use_awaitable), here.octets.size());
    EXPECT_EQ(co_await c.async_send(std::span<const sge>{}, use_awaitable), 0u);
    const completion got = co_await c.async_receive_message(std::span<const sge>{}, use_awaitable);
    EXPECT_EQ(got.kind, completion_kind::receive);
    EXPECT_EQ(co_await c.async_read(here.element(), there.remote(), use_awaitable), here.octets.size());
    EXPECT_EQ(here.octets, there.octets);
    co_await c.async_disconnect(use_awaitable);
  };
  run(world, server, client);
}

TEST_P(AsyncCoroutine, AnOperationMayBeMadeFirstAndAwaitedLater) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  here.fill(3);
  run(world, [&]() -> asio::awaitable<void> {
    // The elements these name are temporaries that are gone when the operations begin.
    auto sending = pair.client.async_send(here.element(), use_awaitable);
    auto receiving = pair.server.async_receive(there.element(), use_awaitable);
    EXPECT_EQ(co_await std::move(sending), 100u);
    EXPECT_EQ(co_await std::move(receiving), 100u);
    EXPECT_EQ(there.octets, here.octets);
  });
}

TEST_P(AsyncCoroutine, ErrorsAreExceptionsOrRedirected) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  run(world, [&]() -> asio::awaitable<void> {
    sge wrong = here.element();
    wrong.key.value ^= 1;
    error_code error;
    EXPECT_EQ(co_await pair.client.async_send(wrong, asio::redirect_error(use_awaitable, error)), 0u);
    EXPECT_TRUE(error == status::local_protection) << error.message();
    bool thrown = false;
    try {
      co_await pair.server.async_receive(here.element(), use_awaitable);
    } catch (const boost::system::system_error& e) {
      thrown = true;
      EXPECT_NE(std::string(e.what()), "");
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_P(AsyncCoroutine, ManyConnectionsSideBySide) {
  constexpr int count = 20;
  auto listener = world.listen();
  int served = 0, asked = 0;
  const auto serve = [&](async_connection c) -> asio::awaitable<void> {
    buffer mine(world.pd, 64);
    for (;;) {
      error_code error;
      const auto n = co_await c.async_receive(mine.element(), asio::redirect_error(use_awaitable, error));
      if (error == asio::error::eof) break;
      EXPECT_FALSE(error) << error.message();
      if (error) co_return;
      co_await c.async_send(mine.element(0, n), use_awaitable);
    }
    ++served;
  };
  const auto listen = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < count; ++i) {
      // A statement of its own: g++ 12 destroys temporaries around a co_await twice.
      auto c = co_await listener.async_accept(world.pd, use_awaitable);
      asio::co_spawn(world.io, serve(std::move(c)), [](const std::exception_ptr& e) {
        if (e) std::rethrow_exception(e);
      });
    }
  };
  const auto ask = [&](unsigned seed) -> asio::awaitable<void> {
    auto c = world.make();
    buffer out(world.pd, 64), in(world.pd, 64);
    co_await c.async_connect(listener.local(), use_awaitable);
    for (unsigned i = 0; i < 10; ++i) {
      out.fill(seed * 100 + i);
      co_await c.async_send(out.element(0, 64 - i), use_awaitable);
      EXPECT_EQ(co_await c.async_receive(in.element(), use_awaitable), 64 - i);
      EXPECT_TRUE(std::equal(in.octets.begin(), in.octets.begin() + 64 - i, out.octets.begin()));
    }
    co_await c.async_disconnect(use_awaitable);
    ++asked;
  };
  asio::co_spawn(world.io, listen, [](const std::exception_ptr&) {});
  for (unsigned i = 0; i < count; ++i) {
    asio::co_spawn(
        world.io, [&, i] { return ask(i); },
        [](const std::exception_ptr& e) {
          if (e) std::rethrow_exception(e);
        });
  }
  world.run_until([&] { return served == count && asked == count; });
}

}  // namespace
}  // namespace iwarp::verbs
