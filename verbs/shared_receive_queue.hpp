// Public API.
// Shared receive queues: receives that several queue pairs draw on (VERBS s6.3; ibv_create_srq).
// Threading: every function from any thread.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/memory.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs {

namespace detail {
class receive_queue;
}

struct shared_receive_queue_options {
  std::uint32_t max_requests = 128;
  std::uint32_t max_sge = 4;
  /// Where event_kind::receive_limit goes; none without.
  std::optional<event_channel> channel = {};
  std::uint64_t user_data = 0;  ///< comes back in that event
};

/// Shared handle.
class shared_receive_queue {
 public:
  /// Its elements are checked against `pd`, not against the queue pairs'. Errors: invalid_depth, invalid_sge_count.
  static result<shared_receive_queue> create(const protection_domain& pd,
                                             const shared_receive_queue_options& options = {});

  /// Errors: invalid_sge_count, invalid_length, queue_full; nothing is posted then.
  result<> post(const receive_request& request);
  /// Posts in order until the first that fails; `posted` says how many went in.
  result<> post(std::span<const receive_request> requests, std::size_t& posted);

  /// One shot: when fewer than `limit` receives are left, event_kind::receive_limit comes; at once if it is so already.
  /// 0 disarms.
  void arm_limit(std::uint32_t limit) noexcept;
  [[nodiscard]] std::uint32_t posted() const noexcept;  ///< receives waiting now

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::receive_queue>& state() const noexcept { return state_; }

 private:
  explicit shared_receive_queue(std::shared_ptr<detail::receive_queue> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::receive_queue> state_;
};

}  // namespace iwarp::verbs
