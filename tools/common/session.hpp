// Part of the programs.
// One connection with the verbs objects it needs: protection domain, one completion queue for both directions, event
// channel, queue pair. Errors are failures whose text says what became of the connection.
// Threading: not thread-safe; one caller at a time.  Time: limits as given.  I/O: waits on descriptors.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/common/peer.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::tools {

/// What became of a connection, as the end of a line: "connection refused", "rejected by the peer: ...", ...
std::string describe(const verbs::connection_event& event);

class session {
 public:
  /// The completion queue is as deep as both queues together.
  session(const verbs::context& where, const verbs::queue_pair_options& queues);

  /// Connects to the first address that answers. `ready` is called for every try with a fresh queue pair: it posts the
  /// first receives. Throws failure "cannot connect to ...".
  void connect(const peer& to, const verbs::connect_options& options, const std::function<void()>& ready);
  /// Takes a Request of a listener and waits until the connection stands.
  void accept(const verbs::connection_event& request, const verbs::accept_options& options = {});

  /// A Send of at most the queue pair's max_inline octets, copied; its completion has id `send_id`.
  void send(const_bytes message);
  static constexpr std::uint64_t send_id = ~std::uint64_t{0};
  /// Posts all or throws.
  void post(std::span<const verbs::send_request> requests);
  void post(const verbs::receive_request& request);

  /// The next successful completion. Polls for `spin`, then sleeps. Throws failure when the connection ended or nothing
  /// came in time, peer_closed after a graceful end, interrupted.
  verbs::completion next(std::chrono::nanoseconds limit, std::chrono::nanoseconds spin = std::chrono::nanoseconds(0));
  /// Throws what next() would for this failed completion.
  [[noreturn]] void fail(const verbs::completion& completed);
  /// Ends the connection gracefully and waits until it is over, at most as long as the options' close_timeout.
  void disconnect();

  [[nodiscard]] verbs::protection_domain& pd() noexcept { return pd_; }
  [[nodiscard]] verbs::completion_queue& cq() noexcept { return cq_; }
  [[nodiscard]] verbs::queue_pair& qp() noexcept { return qp_; }
  /// The event `established`: what was negotiated, the peer's private data.
  [[nodiscard]] const verbs::connection_event& established() const noexcept { return established_; }
  /// The peer's address in words.
  [[nodiscard]] const std::string& peer_text() const noexcept { return peer_text_; }

 private:
  void renew();
  verbs::connection_event wait_event(std::chrono::nanoseconds limit);
  bool refill();

  verbs::context context_;
  verbs::queue_pair_options options_;
  verbs::protection_domain pd_;
  verbs::completion_queue cq_;
  verbs::event_channel channel_;
  verbs::connection_event established_;
  std::string peer_text_;
  std::array<verbs::completion, 32> polled_ = {};
  std::size_t polled_count_ = 0;
  std::size_t polled_next_ = 0;
  verbs::queue_pair qp_;
};

/// Receive buffers of one size in one region; the id of a receive is the number of its buffer.
class receive_buffers {
 public:
  receive_buffers(session& of, std::uint32_t count, std::uint32_t size);
  receive_buffers(const receive_buffers&) = delete;
  receive_buffers& operator=(const receive_buffers&) = delete;

  void post_all();
  void post(std::uint64_t id);
  /// What a completed receive holds. Valid until its buffer is posted again.
  [[nodiscard]] const_bytes octets(const verbs::completion& received) const noexcept;

 private:
  session& session_;
  std::uint32_t size_;
  std::vector<std::byte> memory_;
  verbs::memory_region region_;
};

}  // namespace iwarp::tools
