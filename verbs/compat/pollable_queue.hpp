// Internal to the drop-in.
// A queue with a descriptor, as programs of rdma-core know them: readable while something is in it and never writable,
// O_NONBLOCK on it makes take() not wait.
// Threading: every function from any thread.  Time: take() waits without limit.  I/O: epoll(7), eventfd(2).
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
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
  pollable_queue() : filled_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), public_(::epoll_create1(EPOLL_CLOEXEC)) {
    // An eventfd alone is always writable, which rsockets take for a connection.
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (filled_ >= 0 && public_ >= 0 && ::epoll_ctl(public_, EPOLL_CTL_ADD, filled_, &readable) == 0) return;
    if (public_ >= 0) ::close(std::exchange(public_, -1));
  }
  ~pollable_queue() { close(); }
  pollable_queue(const pollable_queue&) = delete;
  pollable_queue& operator=(const pollable_queue&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return public_; }

  /// Nothing more comes. A thread that waits in take(), or comes there later, stays there: as in a read(2) whose
  /// descriptor another thread closes, which programs do on their way out.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    if (public_ >= 0) ::close(std::exchange(public_, -1));
    if (filled_ >= 0) ::close(std::exchange(filled_, -1));
    values_.clear();
  }

  void put(T value) {
    const std::lock_guard lock(mutex_);
    if (filled_ < 0) return;
    values_.push_back(std::move(value));
    const std::uint64_t one = 1;
    if (values_.size() == 1) (void)!::write(filled_, &one, sizeof one);
  }

  /// The oldest. Nothing: errno says why (EAGAIN, EINTR, EBADF).
  std::optional<T> take() {
    for (;;) {
      int fd = -1;
      {
        const std::lock_guard lock(mutex_);
        fd = public_;
        if (!values_.empty()) {
          T value = std::move(values_.front());
          values_.pop_front();
          note_empty();
          return value;
        }
      }
      if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0 && (flags & O_NONBLOCK) != 0) {
        errno = EAGAIN;
        return std::nullopt;
      }
      pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};  // -1: poll() only waits
      if (::poll(&readable, 1, -1) < 0) return std::nullopt;
      if ((readable.revents & POLLNVAL) != 0 && fd == public_descriptor()) {
        errno = EBADF;  // the program closed it itself
        return std::nullopt;
      }
    }
  }

  /// Takes out what `which` wants and gives it to `sink`.
  template <class Which, class Sink>
  void remove_if(Which&& which, Sink&& sink) {
    const std::lock_guard lock(mutex_);
    if (values_.empty()) return;
    for (auto i = values_.begin(); i != values_.end();) {
      if (which(*i)) {
        sink(std::move(*i));
        i = values_.erase(i);
      } else {
        ++i;
      }
    }
    note_empty();
  }

 private:
  [[nodiscard]] int public_descriptor() {
    const std::lock_guard lock(mutex_);
    return public_;
  }
  void note_empty() noexcept {
    std::uint64_t all = 0;
    if (values_.empty()) (void)!::read(filled_, &all, sizeof all);
  }

  int filled_;
  int public_;
  std::mutex mutex_;
  std::deque<T> values_;
};

}  // namespace iwarp::compat
