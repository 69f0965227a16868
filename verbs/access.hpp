// Public API.
// Rights of a memory region (VERBS s7, libibverbs IBV_ACCESS_*). Local read is always there.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>

namespace iwarp::verbs {

enum class access : std::uint8_t {
  local_read = 0,
  local_write = 1,   ///< receives and Read responses may be placed in it
  remote_write = 2,  ///< the peer may write; needs local_write
  remote_read = 4,   ///< the peer may read
  zero_based = 8,    ///< the peer's offsets count from 0, not from the region's address
};
[[nodiscard]] constexpr access operator|(access a, access b) noexcept {
  return static_cast<access>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr bool has(access set, access right) noexcept {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(right)) == static_cast<std::uint8_t>(right);
}

}  // namespace iwarp::verbs
