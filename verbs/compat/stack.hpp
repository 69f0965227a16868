// Internal to the drop-in.
// The one instance of the stack in a process: a native context that all devices share, and a thread that hands its
// events to whom they concern. It is made at the first use and never destroyed: programs leave by exit() with
// everything open. A child made by fork() gets one of its own when it begins to use RDMA; what its parent had is dead
// to it. Threading: every function from any thread; on_event() is called under a lock that end() takes as well. Time:
// none.  I/O: threads of its own, with all signals blocked.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "verbs/compat/device_list.hpp"
#include "verbs/compat/settings.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::compat {

/// Whom native events concern: a queue pair, a listener, a shared receive queue.
class event_target {
 public:
  virtual void on_event(const verbs::connection_event& event) = 0;

 protected:
  ~event_target() = default;
};

class stack {
 public:
  /// Null when there can be none; a line on stderr said why, once.
  static stack* get();

  verbs::context context;
  verbs::event_channel events;
  const settings options;

  /// The user_data that makes events come to `target`.
  [[nodiscard]] std::uint64_t begin(event_target& target);
  /// When it returns no event is on its way to the target.
  void end(std::uint64_t user_data);
  /// Held while events are handed out.
  [[nodiscard]] std::recursive_mutex& mutex() noexcept { return mutex_; }

  stack(const stack&) = delete;
  stack& operator=(const stack&) = delete;

 private:
  stack(verbs::context c, verbs::event_channel e, settings s)
      : context(std::move(c)), events(std::move(e)), options(std::move(s)) {}
  static stack* make();
  void hand_out();

  std::recursive_mutex mutex_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, event_target*> targets_;
};

/// One line on stderr with the name of the program in front.
void complain(const std::string& what);
/// errno for an error of the native API.
[[nodiscard]] int errno_of(const std::error_code& error) noexcept;
/// Sets errno and returns -1.
int fail_with(int error) noexcept;
inline int fail_with(const std::error_code& error) noexcept { return fail_with(errno_of(error)); }

}  // namespace iwarp::compat
