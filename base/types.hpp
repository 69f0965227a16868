// Public API.
// Protocol quantities that must not be mixed up: STag, message sequence number, time.
// Threading: value types.  Time: passed in as `timestamp`.  I/O: none.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace iwarp {

/// Steering tag (RFC 5041 s4.2): names a registered buffer on the wire. The upper 24 bits are an index that the stack
/// assigns, the low 8 bits a key. STag 0 is never valid remotely (VERBS s7.2).
struct stag {
  std::uint32_t value = 0;

  static constexpr stag make(std::uint32_t index, std::uint8_t key) noexcept { return {(index << 8) | key}; }
  [[nodiscard]] constexpr std::uint32_t index() const noexcept { return value >> 8; }
  [[nodiscard]] constexpr std::uint8_t key() const noexcept { return static_cast<std::uint8_t>(value & 0xff); }
  auto operator<=>(const stag&) const = default;
};

/// Message sequence number of one untagged queue (RFC 5041 s4.3): starts at 1, +1 per message, modulo 2^32.
/// Comparison is wrap-aware: a < b when b is less than 2^31 messages ahead.
struct msn {
  std::uint32_t value = 1;

  constexpr msn& operator++() noexcept {
    ++value;
    return *this;
  }
  bool operator==(const msn&) const = default;
  friend constexpr bool operator<(msn a, msn b) noexcept { return static_cast<std::int32_t>(a.value - b.value) < 0; }
};

/// Monotonic time in nanoseconds from an origin the driver of the engine chooses. The core never reads a clock.
using timestamp = std::chrono::nanoseconds;
using duration = std::chrono::nanoseconds;

/// "No deadline": later than every other timestamp.
inline constexpr timestamp never = timestamp::max();

}  // namespace iwarp
