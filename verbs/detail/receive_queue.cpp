#include "verbs/detail/receive_queue.hpp"

#include <algorithm>
#include <array>

#include "verbs/detail/domain.hpp"
#include "verbs/detail/event_channel_state.hpp"
#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

receive_queue::receive_queue(std::shared_ptr<protection_domain_state> pd, std::uint32_t depth, std::uint32_t max_sge)
    : pd_(std::move(pd)), max_sge_(max_sge), slots_(depth), elements_(std::size_t{depth} * max_sge), fifo_(depth) {
  free_.reserve(depth);
  for (std::uint32_t i = depth; i != 0; --i) free_.push_back(i - 1);
}

result<> receive_queue::post_one(const receive_request& request) noexcept {
  if (request.elements.size() > max_sge_) return fail(errc::invalid_sge_count);
  std::uint64_t size = 0;
  for (const sge& element : request.elements) size += element.length;
  if (size > std::numeric_limits<std::uint32_t>::max()) return fail(errc::invalid_length);
  if (free_.empty()) return fail(errc::queue_full);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  sge* const elements = elements_.data() + std::size_t{index} * max_sge_;
  std::copy(request.elements.begin(), request.elements.end(), elements);
  slots_[index] = {.id = request.id, .elements = {elements, request.elements.size()}, .size = size, .queue = this};
  fifo_[(head_ + count_++) % fifo_.size()] = index;
  return {};
}

result<> receive_queue::post(std::span<const receive_request> requests, std::size_t& posted) {
  posted = 0;
  std::array<domain*, max_domains> woken{};
  std::size_t domains = 0;
  result<> outcome;
  {
    const std::lock_guard lock(mutex_);
    for (const receive_request& request : requests) {
      outcome = post_one(request);
      if (!outcome) break;
      ++posted;
    }
    // Work is published while the waiters cannot go away, and run once the lock is released.
    if (posted != 0) {
      while (!waiters_.empty()) {
        domain* const d = waiters_.back()->publish_receive();
        waiters_.pop_back();
        const auto known = std::span(woken).first(domains);
        if (d == nullptr || std::find(known.begin(), known.end(), d) != known.end()) continue;
        woken[domains++] = d;  // a context has no more domains than fit
      }
    }
  }
  for (std::size_t i = 0; i < domains; ++i) woken[i]->run_published();
  return outcome;
}

rdmap::receive_slot* receive_queue::take(queue_pair_state* waiter) noexcept {
  std::optional<event_channel> tell;
  rdmap::receive_slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) {
      if (waiter != nullptr && std::find(waiters_.begin(), waiters_.end(), waiter) == waiters_.end()) {
        waiters_.push_back(waiter);
      }
      return nullptr;
    }
    slot = &slots_[fifo_[head_]];
    if (++head_ == fifo_.size()) head_ = 0;
    --count_;
    if (count_ < limit_) {
      limit_ = 0;  // one shot
      tell = channel_;
    }
  }
  if (tell) tell->state()->push({.kind = event_kind::receive_limit, .user_data = user_data_});
  return slot;
}

void receive_queue::release(rdmap::receive_slot& slot) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
}

void receive_queue::forget(const queue_pair_state& waiter) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(waiters_, &waiter);
}

void receive_queue::set_limit_channel(const std::optional<event_channel>& channel, std::uint64_t user_data) {
  channel_ = channel;
  user_data_ = user_data;
}

void receive_queue::arm_limit(std::uint32_t limit) noexcept {
  std::optional<event_channel> tell;
  {
    const std::lock_guard lock(mutex_);
    limit_ = limit;
    if (count_ < limit_) {  // below it already: whoever arms it now must not wait for a take that may never come
      limit_ = 0;
      tell = channel_;
    }
  }
  if (tell) tell->state()->push({.kind = event_kind::receive_limit, .user_data = user_data_});
}

std::uint32_t receive_queue::posted() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(count_);
}

}  // namespace iwarp::verbs::detail
