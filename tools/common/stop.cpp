#include "tools/common/stop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <vector>

#include "tools/common/failure.hpp"

namespace iwarp::tools {
namespace {

std::atomic<bool> requested{false};
int wake_descriptor = -1;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void on_signal(int signal) {
  const int saved = errno;
  requested.store(true);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor, &one, sizeof one);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  errno = saved;
}

}  // namespace

void stop_on_signals() {
  wake_descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_descriptor < 0) throw failure("cannot make an eventfd: " + describe({errno, std::system_category()}));
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

bool stop_requested() noexcept { return requested.load(std::memory_order_relaxed); }
int stop_descriptor() noexcept { return wake_descriptor; }

bool wait_readable(std::span<const int> descriptors, std::chrono::nanoseconds limit) {
  using clock = std::chrono::steady_clock;
  const bool endless = limit == no_limit;
  const auto end = clock::now() + (endless ? std::chrono::nanoseconds(0) : limit);
  std::vector<pollfd> wanted;
  for (const int descriptor : descriptors) wanted.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  wanted.push_back({.fd = wake_descriptor, .events = POLLIN, .revents = 0});
  for (;;) {
    timespec left = {};
    if (!endless) {
      const auto nanoseconds =
          std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(end - clock::now())).count();
      left = {.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000), .tv_nsec = nanoseconds % 1'000'000'000};
    }
    const int ready = ::ppoll(wanted.data(), wanted.size(), endless ? nullptr : &left, nullptr);
    if (stop_requested()) throw interrupted();
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw failure("poll failed: " + describe({errno, std::system_category()}));
  }
}

}  // namespace iwarp::tools
