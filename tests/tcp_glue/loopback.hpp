// Internal to tests/tcp_glue.
// Kernel TCP on this machine's loopback: an event loop with a bound, joined transports, and a connection that runs an
// engine the way driver.hpp asks for.
// Threading: one thread.  Time: steady clock, for bounds only.  I/O: loopback TCP.
#pragma once

#include "tcp_glue/acceptor.hpp"
#include "tcp_glue/connector.hpp"
#include "tcp_glue/driver.hpp"
#include "tcp_glue/kernel_transport.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <filesystem>
#include <functional>

namespace iwarp::tcp_glue::test {

inline endpoint loopback_v4(std::uint16_t port = 0) { return {boost::asio::ip::address_v4::loopback(), port}; }
inline endpoint loopback_v6(std::uint16_t port = 0) { return {boost::asio::ip::address_v6::loopback(), port}; }

inline std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

class event_loop {
 public:
  // Asio opens its own descriptors with the first object that waits: before any test counts them.
  event_loop() { boost::asio::ip::tcp::socket first(context); }

  boost::asio::io_context context;

  /// Runs handlers until `done`, for 10 s at most. Returns done().
  bool run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < end) {
      context.restart();
      handlers += context.run_one_for(std::chrono::milliseconds(200));
    }
    return done();
  }
  /// Runs what is ready now and returns how many handlers that were.
  std::size_t run_ready() {
    context.restart();
    const auto n = context.poll();
    handlers += n;
    return n;
  }
  auto executor() { return context.get_executor(); }

  std::size_t handlers = 0;
};

struct transport_pair {
  std::unique_ptr<transport> active;
  std::unique_ptr<transport> passive;
};

inline std::unique_ptr<acceptor> listen(event_loop& loop, const endpoint& where, const listen_options& options = {}) {
  auto made = acceptor::open(loop.executor(), where, options);
  EXPECT_TRUE(made) << (made ? "" : made.error().message());
  return made ? std::move(*made) : nullptr;
}

struct connect_outcome {
  unsigned calls = 0;
  std::error_code error;
  std::unique_ptr<transport> opened;

  connect_handler handler() {
    return [this](std::error_code ec, std::unique_ptr<transport> t) {
      ++calls;
      error = ec;
      opened = std::move(t);
    };
  }
};

/// Two joined transports over the loopback address of `where`.
inline transport_pair join(event_loop& loop, const endpoint& where = loopback_v4()) {
  transport_pair pair;
  const auto listener = listen(loop, where);
  if (!listener) return pair;
  listener->start([&](std::unique_ptr<transport> t) { pair.passive = std::move(t); });
  connect_outcome outcome;
  async_connect(loop.executor(), {.remote = listener->local_endpoint()}, outcome.handler());
  EXPECT_TRUE(loop.run_until([&] { return outcome.calls > 0 && pair.passive; }));
  EXPECT_FALSE(outcome.error) << outcome.error.message();
  pair.active = std::move(outcome.opened);
  listener->close();
  loop.run_ready();
  return pair;
}

/// An engine on a transport, run by readiness.
class connection : public readiness_handler, public std::enable_shared_from_this<connection> {
 public:
  connection(std::unique_ptr<transport> t, mpa::stream_engine& engine)
      : transport_(std::move(t)), driver_(*transport_, engine) {}

  /// After anything that changed the engine from outside.
  void service() {
    driver_.pump_tx({});
    if (driver_.rx_wanted()) driver_.pump_rx({}, budget);
    driver_.pump_tx({});
    if (driver_.rx_wanted() && !reading_) {
      reading_ = true;
      transport_->wait_readable(shared_from_this());
    }
    if (driver_.tx_blocked() && !driver_.closed() && !writing_) {
      writing_ = true;
      transport_->wait_writable(shared_from_this());
    }
  }
  void on_readable(std::error_code ec) noexcept override {
    reading_ = false;
    if (!ec) service();
  }
  void on_writable(std::error_code ec) noexcept override {
    writing_ = false;
    if (!ec) service();
  }

  [[nodiscard]] tcp_glue::driver& driver() noexcept { return driver_; }
  [[nodiscard]] transport& tcp() noexcept { return *transport_; }

  std::size_t budget = 1U << 20;

 private:
  std::unique_ptr<transport> transport_;
  tcp_glue::driver driver_;
  bool reading_ = false;
  bool writing_ = false;
};

}  // namespace iwarp::tcp_glue::test
