// Public API.
// Completion queues: polled, or waited for through a descriptor (VERBS s5.3, s8.2.5; ibv_poll_cq, ibv_req_notify_cq).
// Threading: every function from any thread; several threads may poll one queue.  Time: none.
// I/O: polling an empty queue reads from the connections that feed it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "verbs/context.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs {

namespace detail {
class completion_queue_state;
}

enum class notify : std::uint8_t {
  next,       ///< the next completion
  solicited,  ///< the next receive of a solicited Send, or the next completion with an error
};

/// Shared handle. Safe depth: the sum of the depths of all queues that feed it.
class completion_queue {
 public:
  /// `depth`: completions it holds. Errors: invalid_depth; errno of eventfd(2).
  static result<completion_queue> create(const context& where, std::uint32_t depth);

  /// Takes up to out.size() completions, oldest first; returns how many. Makes progress when fewer are there.
  std::size_t poll(std::span<completion> out) noexcept;

  /// One shot: the descriptor becomes readable at the next completion that fits `what`. Poll again afterwards: one that
  /// came before is not announced.
  void arm(notify what = notify::next) noexcept;
  /// An eventfd: readable once an armed completion came. For epoll, select, Asio; never closed by the caller.
  [[nodiscard]] int descriptor() const noexcept;
  /// Takes the announcement off the descriptor. True when there was one.
  bool acknowledge() noexcept;

  /// A completion was lost because the queue was full; its queue pair is being ended (Terminate 0/2/07). Other queue
  /// pairs that feed the queue go on until they lose one themselves.
  [[nodiscard]] bool overflowed() const noexcept;
  /// Changes the depth; no completion is lost. Errors: invalid_depth, also when more are held than `depth`.
  result<> resize(std::uint32_t depth);
  [[nodiscard]] std::uint32_t depth() const noexcept;

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::completion_queue_state>& state() const noexcept { return state_; }

 private:
  explicit completion_queue(std::shared_ptr<detail::completion_queue_state> state) noexcept
      : state_(std::move(state)) {}
  std::shared_ptr<detail::completion_queue_state> state_;
};

}  // namespace iwarp::verbs
