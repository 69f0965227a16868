#include "verbs/detail/completion_queue_state.hpp"

#include <algorithm>

#include "verbs/detail/domain.hpp"
#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

completion_queue_state::completion_queue_state(std::shared_ptr<context_state> where, event_descriptor descriptor,
                                               std::uint32_t depth)
    : context_(std::move(where)), descriptor_(std::move(descriptor)), ring_(depth) {}

bool completion_queue_state::push(const completion_entry& entry) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == ring_.size()) {
    overflowed_.store(true, std::memory_order_relaxed);
    free_slots(entry);
    return false;
  }
  ring_[(head_ + count) % ring_.size()] = entry;
  count_.store(count + 1, std::memory_order_release);
  // Solicited: a receive of a solicited Send, or any completion in error (VERBS s8.2.5). One shot.
  if (armed_ == armed_for::next ||
      (armed_ == armed_for::solicited && (entry.what.solicited || entry.what.status != status::success))) {
    armed_ = armed_for::nothing;
    descriptor_.signal();
  }
  return true;
}

void completion_queue_state::free_slots(const completion_entry& entry) noexcept {
  if (entry.send_slots != 0) entry.owner->free_send_slots(entry.send_slots);
  if (entry.receive != nullptr) static_cast<receive_queue*>(entry.receive->queue)->release(*entry.receive);
}

std::size_t completion_queue_state::take(std::span<completion> out) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return 0;
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  const std::size_t n = std::min(count, out.size());
  for (std::size_t i = 0; i < n; ++i) {
    const completion_entry& entry = ring_[head_];
    out[i] = entry.what;
    free_slots(entry);
    if (++head_ == ring_.size()) head_ = 0;
  }
  count_.store(count - n, std::memory_order_release);
  return n;
}

std::size_t completion_queue_state::poll(std::span<completion> out) noexcept {
  std::size_t n = take(out);
  if (n == out.size()) return n;
  for (const std::atomic<domain*>& feeder : feeders_) {
    domain* const d = feeder.load(std::memory_order_acquire);
    if (d != nullptr) d->poll();
  }
  return n + take(out.subspan(n));
}

void completion_queue_state::arm(notify what) noexcept {
  {
    const std::lock_guard lock(mutex_);
    // Armed for any completion stays so when armed for solicited ones (as ibv_req_notify_cq has it).
    if (armed_ != armed_for::next) armed_ = what == notify::next ? armed_for::next : armed_for::solicited;
  }
  for (const std::atomic<domain*>& feeder : feeders_) {
    domain* const d = feeder.load(std::memory_order_acquire);
    if (d != nullptr) d->stop_polling();
  }
}

result<> completion_queue_state::resize(std::uint32_t depth) {
  if (depth == 0 || depth > max_queue_depth * 4) return fail(errc::invalid_depth);
  std::vector<completion_entry> ring(depth);
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count > depth) return fail(errc::invalid_depth);
  for (std::size_t i = 0; i < count; ++i) ring[i] = ring_[(head_ + i) % ring_.size()];
  ring_ = std::move(ring);
  head_ = 0;
  return {};
}

std::uint32_t completion_queue_state::depth() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(ring_.size());
}

void completion_queue_state::purge(const queue_pair_state& owner) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t count = count_.load(std::memory_order_relaxed);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const completion_entry entry = ring_[(head_ + i) % ring_.size()];
    if (entry.owner == &owner) {
      free_slots(entry);
    } else {
      ring_[(head_ + kept++) % ring_.size()] = entry;
    }
  }
  count_.store(kept, std::memory_order_release);
}

void completion_queue_state::attach(domain& feeder) {
  const std::lock_guard lock(mutex_);
  std::size_t at = max_domains;
  for (std::size_t i = 0; i < max_domains; ++i) {
    domain* const there = feeders_[i].load();
    if (there == &feeder) {
      ++feeder_uses_[i];
      return;
    }
    if (there == nullptr && at == max_domains) at = i;
  }
  feeders_[at].store(&feeder, std::memory_order_release);
  feeder_uses_[at] = 1;
}

void completion_queue_state::detach(domain& feeder) noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < max_domains; ++i) {
    if (feeders_[i].load() == &feeder && --feeder_uses_[i] == 0) feeders_[i].store(nullptr);
  }
}

}  // namespace iwarp::verbs::detail
