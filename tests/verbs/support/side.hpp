// Internal to tests.
// Contexts under every kind of progress, and one side of a connection: a queue pair with its queues, memory and ledger.
// Threading: not thread-safe; the test's main thread.  Time: every wait is bounded.  I/O: real sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/verbs/support/completion_ledger.hpp"
#include "tests/verbs/support/guarded_memory.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::verbs_test {

using namespace std::chrono_literals;

/// A test that waits longer has failed. Generous: sanitizers on a busy machine are slow.
inline constexpr auto patience = 20s;

struct setup {
  std::string name = "Automatic";
  verbs::progress_mode mode = verbs::progress_mode::automatic;
  unsigned domains = 1;
  bool v6 = false;
  std::chrono::seconds peer_timeout = verbs::context_options{}.peer_timeout;

  [[nodiscard]] verbs::endpoint loopback() const;
};
/// Automatic; two domains over IPv6; manual.
[[nodiscard]] std::vector<setup> all_setups();
std::ostream& operator<<(std::ostream& out, const setup& s);
/// For INSTANTIATE_TEST_SUITE_P.
[[nodiscard]] std::string setup_name(const testing::TestParamInfo<setup>& info);

/// A context, with the io_context that manual progress needs.
class node {
 public:
  explicit node(const setup& how = {});
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// Manual progress: runs what is ready.
  void drive();
  /// All that live.
  static void drive_all();

 private:
  std::unique_ptr<boost::asio::io_context> io_;  // outlives the context

 public:
  verbs::context context;
  verbs::protection_domain pd;
};

/// Drives every node until `done` or the time is over.
template <class Done>
[[nodiscard]] bool wait_until(Done&& done, std::chrono::nanoseconds limit = patience) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (int i = 0; !done(); ++i) {
    if (std::chrono::steady_clock::now() >= end) return false;
    node::drive_all();
    if (i > 100) std::this_thread::yield();
  }
  return true;
}

struct side_options {
  verbs::queue_pair_options qp = {};
  std::uint32_t cq_depth = 1024;
  std::size_t memory = 256 * 1024;
  verbs::access rights = verbs::access::local_write | verbs::access::remote_write | verbs::access::remote_read;
  std::optional<verbs::shared_receive_queue> receives = {};
};

class side {
 public:
  explicit side(node& where, const side_options& options = {});

  // Each of them tells the ledger, and fails the test when it is refused.
  void send(std::uint64_t id, verbs::send_request request);
  void send(std::uint64_t id, std::size_t at, std::uint32_t size, bool signaled = true);
  void write(std::uint64_t id, std::size_t at, std::uint32_t size, verbs::remote_buffer to, bool signaled = true);
  void read(std::uint64_t id, std::size_t at, std::uint32_t size, verbs::remote_buffer from);
  void receive(std::uint64_t id, std::size_t at, std::uint32_t size);
  /// Tells the ledger and leaves a refusal to the caller.
  result<> try_send(std::uint64_t id, verbs::send_request request);

  /// Polls once; completions go through the ledger to `arrived`.
  void poll();
  /// The next completion; fails the test and returns one of id ~0 when none comes.
  verbs::completion completion(std::chrono::nanoseconds limit = patience);
  /// Waits for that one and checks it.
  void expect(std::uint64_t id, verbs::status status = verbs::status::success);
  /// Polls until the ledger is even.
  [[nodiscard]] bool settle(std::chrono::nanoseconds limit = patience);
  /// The next event; fails the test and returns an empty one when none comes.
  verbs::connection_event event(std::chrono::nanoseconds limit = patience);
  /// Waits for it and checks its kind.
  verbs::connection_event expect(verbs::event_kind kind);
  [[nodiscard]] bool wait_state(verbs::qp_state state, std::chrono::nanoseconds limit = patience);

  node& home;
  guarded_memory memory;
  verbs::memory_region region;
  verbs::completion_queue cq;
  verbs::event_channel channel;
  completion_ledger ledger;
  std::deque<verbs::completion> arrived;
  verbs::queue_pair qp;
};

/// The next event of a channel that is no side's.
verbs::connection_event next_event(verbs::event_channel& channel, std::chrono::nanoseconds limit = patience);
/// Nothing is in the channel, nor comes while everything else is driven for a moment.
[[nodiscard]] bool stays_quiet(verbs::event_channel& channel, std::chrono::nanoseconds for_how_long = 20ms);

/// For tests that count or script FPDUs: the stack sends none by itself.
inline verbs::connect_options without_rtr() {
  verbs::connect_options options;
  options.rtr_delay = {};
  return options;
}

struct pair_options {
  setup how = {};
  verbs::connect_options connect = without_rtr();
  verbs::listen_options listen = {};
  verbs::accept_options accept = {};
  side_options client = {};
  side_options server = {};
  bool one_context = false;  ///< both sides in the same
  bool open = true;          ///< the client sends an empty Write, so that the server may send (RFC 5044 s7.1.2 rule 4)
};

/// Two sides, connected over TCP. Fails the test when they do not get there.
class connected_pair {
 public:
  explicit connected_pair(const pair_options& options = {});
  explicit connected_pair(const setup& how) : connected_pair(pair_options{.how = how}) {}

  /// Connects what is idle. Both ends have seen `established` when it returns.
  void connect();
  /// The client's first FPDU has arrived.
  void open();
  /// Closes from the client and sees both ends through to idle.
  void disconnect();

  pair_options options;
  node server_node;
  std::optional<node> client_node;
  verbs::event_channel listening;
  verbs::listener listener;
  verbs::connection_event request;
  verbs::connection_event client_up, server_up;
  side server;
  side client;
};

}  // namespace iwarp::verbs_test
