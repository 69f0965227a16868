#include "verbs/detail/event_channel_state.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/detail/context_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

result<event_descriptor> event_descriptor::create() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return fail(std::error_code{errno, std::generic_category()});
  return event_descriptor{fd};
}

event_descriptor::~event_descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void event_descriptor::signal() noexcept {
  const std::uint64_t one = 1;
  // A full counter (EAGAIN) is a readable one, which is all that is wanted.
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}

bool event_descriptor::take() noexcept {
  std::uint64_t count = 0;
  return ::read(fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

void event_channel_state::push(connection_event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  descriptor_.signal();
  arrived_.notify_all();
}

std::optional<connection_event> event_channel_state::pop() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  std::optional<connection_event> event{std::move(events_.front())};
  events_.pop_front();
  if (events_.empty()) descriptor_.take();
  return event;
}

result<connection_event> event_channel_state::wait(std::chrono::nanoseconds limit) {
  const auto end = std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(limit, std::chrono::hours(24));
  if (context_->manual()) {
    for (;;) {
      if (auto event = pop()) return std::move(*event);
      if (context_->io().stopped()) context_->io().restart();
      // Work may be of the kind that Asio does not count (none pending): look at the clock now and then.
      const auto now = std::chrono::steady_clock::now();
      if (now >= end) return fail(errc::timed_out);
      context_->io().run_one_for(std::min<std::chrono::nanoseconds>(end - now, std::chrono::milliseconds(10)));
    }
  }
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_until(lock, end, [&] { return !events_.empty(); })) return fail(errc::timed_out);
  connection_event event = std::move(events_.front());
  events_.pop_front();
  if (events_.empty()) descriptor_.take();
  return event;
}

}  // namespace iwarp::verbs::detail
