// Internal to verbs.
// The queue behind an event channel, and an eventfd that is readable while it is not empty.
// Threading: every function from any thread.  Time: none.  I/O: eventfd.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "verbs/event_channel.hpp"

namespace iwarp::verbs::detail {

class context_state;

/// An eventfd, closed with its owner.
class event_descriptor {
 public:
  static result<event_descriptor> create();
  event_descriptor(event_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  event_descriptor& operator=(event_descriptor&&) = delete;
  ~event_descriptor();
  void signal() noexcept;
  bool take() noexcept;  ///< true when it was signalled
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  explicit event_descriptor(int fd) noexcept : fd_(fd) {}
  int fd_;
};

class event_channel_state {
 public:
  event_channel_state(std::shared_ptr<context_state> where, event_descriptor descriptor) noexcept
      : context_(std::move(where)), descriptor_(std::move(descriptor)) {}

  void push(connection_event event);
  std::optional<connection_event> pop();
  result<connection_event> wait(std::chrono::nanoseconds limit);
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
  [[nodiscard]] const std::shared_ptr<context_state>& context() const noexcept { return context_; }

 private:
  std::shared_ptr<context_state> context_;
  event_descriptor descriptor_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<connection_event> events_;
};

}  // namespace iwarp::verbs::detail
