// Internal to tests.
// Random numbers that a failing test can be repeated with: the same seed gives the same numbers everywhere.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace iwarp::test_support {

/// splitmix64. (std::uniform_int_distribution differs between standard libraries, so it is not used.)
/// Name the seed when a test fails: SCOPED_TRACE(testing::Message() << "seed " << random.seed()).
class random_source {
 public:
  using result_type = std::uint64_t;  // a UniformRandomBitGenerator, for std::shuffle

  explicit random_source(std::uint64_t seed) noexcept : seed_(seed), state_(seed) {}

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t operator()() noexcept {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return UINT64_MAX; }

  /// low..high, both included. Uniform enough for tests: ranges are far below 2^64.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) noexcept {
    assert(low <= high && high - low != UINT64_MAX);
    return low + (*this)() % (high - low + 1);
  }
  /// 0..bound-1; bound > 0.
  std::size_t below(std::size_t bound) noexcept { return static_cast<std::size_t>(between(0, bound - 1)); }
  /// True `percent` times of 100.
  bool chance(unsigned percent) noexcept { return between(0, 99) < percent; }
  [[nodiscard]] std::vector<std::byte> octets(std::size_t size) {
    std::vector<std::byte> out(size);
    for (std::byte& b : out) b = static_cast<std::byte>((*this)());
    return out;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t state_;
};

}  // namespace iwarp::test_support
