// iwarp-sample-coroutine: every operation by co_await, server and client in one io_context.
//
// It teaches two things. Operations are Asio's: here with use_awaitable, elsewhere with callbacks or futures. And with
// manual progress the stack has no thread of its own: the program's io_context drives everything.
#include <fmt/format.h>

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "samples/support/must.hpp"
#include "verbs/async.hpp"
#include "verbs/verbs.hpp"

namespace {

using namespace iwarp;
namespace asio = boost::asio;
using asio::use_awaitable;
using verbs::access;

/// Registered memory of `size` octets.
struct buffer {
  buffer(const verbs::protection_domain& pd, std::size_t size, access rights)
      : octets(size), region(must(verbs::memory_region::create(pd, octets, rights), "registering memory")) {}
  void fill(std::string_view text) { std::memcpy(octets.data(), text.data(), std::min(text.size(), octets.size())); }
  [[nodiscard]] std::string text() const { return {reinterpret_cast<const char*>(octets.data()), octets.size()}; }

  std::vector<std::byte> octets;
  verbs::memory_region region;
};

/// What the server tells its client of its memory.
struct advertisement {
  std::uint32_t key;
  std::uint64_t offset;
};

asio::awaitable<void> serve(verbs::async_listener& listener, verbs::protection_domain pd) {
  auto connection = co_await listener.async_accept(pd, use_awaitable);

  // The client may read and write this, and learns where it is by a Send.
  buffer shared(pd, 16, access::local_write | access::remote_read | access::remote_write);
  shared.fill("server's octets.");
  buffer message(pd, sizeof(advertisement), access::local_write);
  const advertisement where{shared.region.key().value, shared.region.remote().offset};
  std::memcpy(message.octets.data(), &where, sizeof where);
  co_await connection.async_send(message.region.element(), use_awaitable);

  // A Write does not show at the side that is written to. The message behind it does.
  const std::size_t size = co_await connection.async_receive(message.region.element(), use_awaitable);
  fmt::print("server: got a message of {} octets, and my memory now says \"{}\"\n", size, shared.text());
  co_await connection.async_wait_end(use_awaitable);
  fmt::print("server: the client has gone\n");
}

asio::awaitable<void> use(verbs::async_connection connection, verbs::endpoint server, verbs::protection_domain pd) {
  co_await connection.async_connect(server, use_awaitable);

  buffer message(pd, sizeof(advertisement), access::local_write);
  co_await connection.async_receive(message.region.element(), use_awaitable);
  advertisement where{};
  std::memcpy(&where, message.octets.data(), sizeof where);
  const verbs::remote_buffer remote{{where.key}, where.offset};

  buffer mine(pd, 16, access::local_write);
  co_await connection.async_read(mine.region.element(), remote, use_awaitable);
  fmt::print("client: read \"{}\"\n", mine.text());
  mine.fill("client's octets.");
  co_await connection.async_write(mine.region.element(), remote, use_awaitable);
  co_await connection.async_send(mine.region.element(0, 1), use_awaitable);

  // Errors are exceptions. This one the stack finds before anything is sent: five elements, four are allowed.
  try {
    co_await connection.async_send(std::vector(5, mine.region.element()), use_awaitable);
  } catch (const boost::system::system_error& e) {
    fmt::print("client: {}\n", e.code().message());
  }
  co_await connection.async_disconnect(use_awaitable);
}

}  // namespace

int main() try {
  asio::io_context io;
  const auto stack =
      must(verbs::context::create({.progress = verbs::progress_mode::manual, .io = &io}), "creating the stack");
  const auto pd = verbs::protection_domain::create(stack);
  auto listener =
      must(verbs::async_listener::create(io.get_executor(), stack, {asio::ip::address_v4::loopback(), 0}), "listening");
  auto connection = must(verbs::async_connection::create(io.get_executor(), stack, pd), "making a connection");

  const auto rethrow = [](const std::exception_ptr& e) {
    if (e) std::rethrow_exception(e);
  };
  int running = 2;
  const auto ended = [&](const std::exception_ptr& e) {
    rethrow(e);
    if (--running == 0) listener.close();  // nothing is left to wait for, so run() returns
  };
  asio::co_spawn(io, serve(listener, pd), ended);
  asio::co_spawn(io, use(std::move(connection), listener.local(), pd), ended);
  io.run();
} catch (const std::exception& e) {
  fmt::print(stderr, "iwarp-sample-coroutine: {}\n", e.what());
  return 1;
}
