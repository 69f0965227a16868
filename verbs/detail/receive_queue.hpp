// Internal to verbs.
// Posted receives: of one queue pair, or shared by several. A slot is in use from its post until its completion is
// polled. Threading: every function from any thread.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "rdmap/work_request.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs::detail {

class domain;
class queue_pair_state;
struct protection_domain_state;

class receive_queue {
 public:
  receive_queue(std::shared_ptr<protection_domain_state> pd, std::uint32_t depth, std::uint32_t max_sge);

  /// Posts in order until the first that fails. Queue pairs that hold a message for want of a receive are woken.
  result<> post(std::span<const receive_request> requests, std::size_t& posted);
  /// The oldest posted receive; null when there is none: `waiter`, if given, is woken by the next post.
  rdmap::receive_slot* take(queue_pair_state* waiter) noexcept;
  /// The completion was polled: the slot may be posted again.
  void release(rdmap::receive_slot& slot) noexcept;
  /// `waiter` is going away.
  void forget(const queue_pair_state& waiter) noexcept;

  void set_limit_channel(const std::optional<event_channel>& channel, std::uint64_t user_data);
  void arm_limit(std::uint32_t limit) noexcept;
  [[nodiscard]] std::uint32_t posted() const noexcept;
  [[nodiscard]] std::uint32_t max_sge() const noexcept { return max_sge_; }
  [[nodiscard]] const protection_domain_state* pd() const noexcept { return pd_.get(); }
  [[nodiscard]] const std::shared_ptr<protection_domain_state>& shared_pd() const noexcept { return pd_; }

 private:
  result<> post_one(const receive_request& request) noexcept;

  std::shared_ptr<protection_domain_state> pd_;
  std::uint32_t max_sge_;
  mutable std::mutex mutex_;
  std::vector<rdmap::receive_slot> slots_;
  std::vector<sge> elements_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> fifo_;  // ring of posted slots
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::uint32_t limit_ = 0;
  std::optional<event_channel> channel_;
  std::uint64_t user_data_ = 0;
  std::vector<queue_pair_state*> waiters_;
};

}  // namespace iwarp::verbs::detail
