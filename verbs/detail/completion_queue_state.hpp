// Internal to verbs.
// The ring behind a completion queue. Entries carry what a poll must give back: slots of their queues.
// Threading: every function from any thread.  Time: none.  I/O: eventfd, and progress of the domains that feed it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "rdmap/work_request.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/detail/domain.hpp"
#include "verbs/detail/event_channel_state.hpp"

namespace iwarp::verbs::detail {

class context_state;
class queue_pair_state;

struct completion_entry {
  completion what;
  queue_pair_state* owner = nullptr;
  std::uint32_t send_slots = 0;            ///< requests, this one included, whose slots the poll frees
  rdmap::receive_slot* receive = nullptr;  ///< the receive whose slot the poll frees
};

class completion_queue_state {
 public:
  completion_queue_state(std::shared_ptr<context_state> where, event_descriptor descriptor, std::uint32_t depth);

  /// False when it was full: the completion is lost and the queue is marked overflowed.
  bool push(const completion_entry& entry) noexcept;
  std::size_t poll(std::span<completion> out) noexcept;
  void arm(notify what) noexcept;
  bool acknowledge() noexcept { return descriptor_.take(); }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] bool overflowed() const noexcept { return overflowed_.load(std::memory_order_relaxed); }
  result<> resize(std::uint32_t depth);
  [[nodiscard]] std::uint32_t depth() const noexcept;

  /// Completions of this queue pair vanish; their slots are freed.
  void purge(const queue_pair_state& owner) noexcept;
  /// Polling drives this domain from now on; counted, one detach per attach.
  void attach(domain& feeder);
  void detach(domain& feeder) noexcept;
  [[nodiscard]] const std::shared_ptr<context_state>& context() const noexcept { return context_; }

 private:
  std::size_t take(std::span<completion> out) noexcept;
  static void free_slots(const completion_entry& entry) noexcept;

  std::shared_ptr<context_state> context_;
  event_descriptor descriptor_;
  mutable std::mutex mutex_;
  std::vector<completion_entry> ring_;
  std::size_t head_ = 0;
  std::atomic<std::size_t> count_{0};
  enum class armed_for : std::uint8_t { nothing, next, solicited };
  armed_for armed_ = armed_for::nothing;
  std::atomic<bool> overflowed_{false};

  std::array<std::atomic<domain*>, max_domains> feeders_{};
  std::array<std::uint32_t, max_domains> feeder_uses_{};  // under mutex_
};

}  // namespace iwarp::verbs::detail
