// Internal to verbs.
// The lock of a progress domain: cheap to try, and a full barrier both ways, so that "publish work, then try the lock"
// and "release the lock, then look for work" can never both miss each other.
// Threading: it is the lock.  Time: none.  I/O: none.
#pragma once

#include <atomic>
#include <cstdint>

namespace iwarp::verbs::detail {

class domain_lock {
 public:
  bool try_lock() noexcept {
    std::uint32_t expected = free_state;
    return state_.compare_exchange_strong(expected, held);
  }
  void lock() noexcept {
    for (int spin = 0; spin < 64; ++spin) {
      if (try_lock()) return;
    }
    while (state_.exchange(contended) != free_state) state_.wait(contended);
  }
  void unlock() noexcept {
    if (state_.exchange(free_state) == contended) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t free_state = 0;
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t contended = 2;
  std::atomic<std::uint32_t> state_{free_state};
};

}  // namespace iwarp::verbs::detail
