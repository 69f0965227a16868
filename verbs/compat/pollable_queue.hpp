// Internal to the drop-in.
// A queue with a descriptor, as programs of rdma-core know them: readable while something is in it, O_NONBLOCK on it
// makes take() not wait. Threading: every function from any thread.  Time: take() waits without limit.  I/O:
// eventfd(2).
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace iwarp::compat {

template <class T>
class pollable_queue {
 public:
  /// descriptor() is -1 and errno set when there is none to be had.
  pollable_queue() : fd_(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}
  ~pollable_queue() {
    if (fd_ >= 0) ::close(fd_);
  }
  pollable_queue(const pollable_queue&) = delete;
  pollable_queue& operator=(const pollable_queue&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return fd_; }

  void put(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    announce();
  }

  /// The oldest. Nothing: errno says why (EAGAIN, EINTR, EBADF).
  std::optional<T> take() {
    for (;;) {
      std::uint64_t one = 0;
      if (::read(fd_, &one, sizeof one) != sizeof one) return std::nullopt;
      const std::lock_guard lock(mutex_);
      if (values_.empty()) continue;  // taken out by remove_if() in between
      T value = std::move(values_.front());
      values_.pop_front();
      return value;
    }
  }

  /// Takes out what `which` wants and gives it to `sink`.
  template <class Which, class Sink>
  void remove_if(Which&& which, Sink&& sink) {
    const std::lock_guard lock(mutex_);
    for (auto i = values_.begin(); i != values_.end();) {
      if (!which(*i)) {
        ++i;
        continue;
      }
      sink(std::move(*i));
      i = values_.erase(i);
      pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
      std::uint64_t one = 0;
      if (::poll(&readable, 1, 0) == 1) (void)!::read(fd_, &one, sizeof one);
    }
  }

 private:
  void announce() noexcept {
    const std::uint64_t one = 1;
    while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  const int fd_;
  std::mutex mutex_;
  std::deque<T> values_;
};

}  // namespace iwarp::compat
