// Internal to verbs.
// The state behind a listener: connections whose Request is awaited or waits for its answer.
// Threading: everything under the lock of the connection's domain, except as said.  Time: none.  I/O: acceptor.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "tcp_glue/acceptor.hpp"
#include "verbs/detail/connection.hpp"
#include "verbs/detail/context_state.hpp"
#include "verbs/detail/event_channel_state.hpp"
#include "verbs/listener.hpp"

namespace iwarp::verbs::detail {

/// What connection_request holds. Unanswered at the end of its life, it says no.
struct pending_request {
  std::shared_ptr<context_state> context;  // outlives peer
  std::shared_ptr<connection> peer;
  std::atomic<bool> answered{false};
  ~pending_request();
};

class listener_state {
 public:
  listener_state(std::shared_ptr<event_channel_state> channel, const listen_options& options);
  /// Errors: as listener::create().
  result<> open(const endpoint& where);
  /// Any thread, no lock held: frees the port and drops connections whose Request was not answered.
  void close() noexcept;

  void stream_event(connection& c, rdmap::stream_event event) noexcept;
  /// The connection is no longer this listener's business.
  void let_go(connection& c) noexcept;
  [[nodiscard]] endpoint local() const { return acceptor_->local_endpoint(); }
  [[nodiscard]] const listen_options& options() const noexcept { return options_; }

 private:
  /// Keeps the acceptor's handler from a listener that is gone.
  struct gate {
    std::mutex mutex;
    listener_state* owner = nullptr;
  };
  void accepted(std::unique_ptr<tcp_glue::transport> transport);
  /// Under the lock of whichever domain: one more or one fewer waits for its answer.
  void count_pending(bool one_more) noexcept;

  std::shared_ptr<event_channel_state> channel_;
  const listen_options options_;
  std::shared_ptr<gate> gate_ = std::make_shared<gate>();
  std::unique_ptr<tcp_glue::acceptor> acceptor_;
  std::shared_ptr<domain> next_home_;  // of the connection being accepted; on the acceptor's executor
  std::mutex pending_mutex_;           // pausing and resuming follow the count in its order
  std::uint32_t pending_ = 0;
  bool paused_ = false;
};

}  // namespace iwarp::verbs::detail
