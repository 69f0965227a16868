#include "verbs/compat/stack.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

namespace iwarp::compat {
namespace {

// Constructed before main() and never destroyed, so that it works in other libraries' constructors and destructors.
std::mutex& making() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
stack* the_stack = nullptr;
bool tried = false;
pid_t of_process = 0;

// Signals are for the program's own threads.
class no_signals {
 public:
  no_signals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~no_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;

 private:
  sigset_t before_;
};

void before_fork() { making().lock(); }
void in_parent() { making().unlock(); }
void in_child() {
  // The threads are gone, and locks may be held for ever.
  the_stack = nullptr;
  tried = false;
  making().unlock();
}

}  // namespace

void complain(const std::string& what) {
  // The program is not ours, and its user hears of this in no other way.
  std::fprintf(stderr, "iwarp: %s\n", what.c_str());  // lint: allow
}

int fail_with(int error) noexcept {
  errno = error;
  return -1;
}

int errno_of(const std::error_code& error) noexcept {
  if (error.category() == std::system_category() || error.category() == std::generic_category()) return error.value();
  if (error.category() != verbs::error_category()) return EPROTO;
  switch (static_cast<verbs::errc>(error.value())) {
    case verbs::errc::queue_full:
    case verbs::errc::too_many:
      return ENOMEM;
    case verbs::errc::invalid_memory:
      return EFAULT;
    case verbs::errc::not_connected:
      return ENOTCONN;
    case verbs::errc::already_connected:
      return EISCONN;
    case verbs::errc::no_such_request:
      return ECONNRESET;
    case verbs::errc::peer_unreachable:
      return EHOSTUNREACH;
    case verbs::errc::address_in_use:
      return EADDRINUSE;
    case verbs::errc::timed_out:
      return ETIMEDOUT;
    case verbs::errc::recording_failed:
      return EIO;
    case verbs::errc::invalid_argument:
    case verbs::errc::invalid_depth:
    case verbs::errc::invalid_sge_count:
    case verbs::errc::invalid_length:
    case verbs::errc::invalid_access:
    case verbs::errc::invalid_private_data:
    case verbs::errc::invalid_read_depth:
    case verbs::errc::invalid_revision:
    case verbs::errc::invalid_opcode:
    case verbs::errc::invalid_key:
    case verbs::errc::has_shared_receive_queue:
    case verbs::errc::wrong_context:
    case verbs::errc::wrong_state:
    case verbs::errc::cq_overflow:
    case verbs::errc::not_automatic:
      return EINVAL;
  }
  return EINVAL;
}

stack* stack::get() {
  const std::lock_guard lock(making());
  if (!tried) {
    tried = true;
    if (of_process == 0) ::pthread_atfork(before_fork, in_parent, in_child);
    of_process = ::getpid();
    the_stack = make();
  }
  return the_stack;
}

stack* stack::make() {
  auto options = read_settings();
  if (!options.problem.empty()) complain(options.problem);
  const no_signals here;
  auto context = verbs::context::create({.domains = options.domains});
  if (!context) {
    complain("no RDMA: " + context.error().message());
    return nullptr;
  }
  auto events = verbs::event_channel::create(*context);
  if (!events) {
    complain("no RDMA: " + events.error().message());
    return nullptr;
  }
  auto* made = new stack(*std::move(context), *std::move(events), std::move(options));
  std::thread([made] { made->hand_out(); }).detach();
  return made;
}

void stack::hand_out() {
  for (;;) {
    const auto event = events.wait(std::chrono::hours(1));
    if (!event) continue;
    const std::lock_guard lock(mutex_);
    const auto found = targets_.find(event->user_data);
    if (found != targets_.end()) found->second->on_event(*event);
  }
}

std::uint64_t stack::begin(event_target& target) {
  const std::lock_guard lock(mutex_);
  targets_.emplace(++last_, &target);
  return last_;
}

void stack::end(std::uint64_t user_data) {
  const std::lock_guard lock(mutex_);
  targets_.erase(user_data);
}

}  // namespace iwarp::compat
