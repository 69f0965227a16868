#include "async_world.hpp"

#include <algorithm>
#include <chrono>

namespace iwarp::verbs {

namespace {
constexpr auto patience = std::chrono::seconds(20);

endpoint loopback(std::uint16_t port) { return {asio::ip::address_v4::loopback(), port}; }
}  // namespace

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::byte>((i * 31 + (i >> 8) * 7 + seed * 13) & 0xff);
  return made;
}

buffer::buffer(const protection_domain& pd, std::size_t size, access rights)
    : octets(size), region(memory_region::create(pd, octets, rights).value()) {}

void buffer::fill(unsigned seed) { std::ranges::copy(pattern(octets.size(), seed), octets.begin()); }

async_world::async_world(progress_mode mode)
    : stack(context::create({.progress = mode, .io = mode == progress_mode::manual ? &io : nullptr}).value()),
      pd(protection_domain::create(stack)) {}

void async_world::run_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "nothing more happened";
      throw std::runtime_error("timed out");
    }
    if (io.stopped()) io.restart();
    io.run_one_for(std::chrono::milliseconds(50));
  }
}

void async_world::settle() {
  if (io.stopped()) io.restart();
  io.poll();
}

async_connection async_world::make(const queue_pair_options& options) {
  return async_connection::create(io.get_executor(), stack, pd, options).value();
}

async_listener async_world::listen(const listen_options& options) {
  return async_listener::create(io.get_executor(), stack, loopback(0), options).value();
}

async_pair::async_pair(async_world& world, const queue_pair_options& client_options,
                       const queue_pair_options& server_options, const connect_options& how)
    : listener(world.listen()), client(world.make(client_options)) {
  outcome connected, accepted;
  listener.async_accept(world.pd, server_options, {}, [&](const error_code& e, async_connection c) {
    server = std::move(c);
    accepted(e);
  });
  client.async_connect(listener.local(), how, connected.handler());
  world.run_until([&] { return connected.calls != 0 && accepted.calls != 0; });
  EXPECT_FALSE(connected.error) << connected.error.message();
  EXPECT_FALSE(accepted.error) << accepted.error.message();
}

}  // namespace iwarp::verbs
