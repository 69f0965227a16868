// Part of iwarp-perf.
// The last octet of a buffer that a peer's Writes fill: both ends of a ping-pong of Writes look at it.
// Threading: the stack may write on another thread.  Time: none.  I/O: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.hpp"

namespace iwarp::tools::perf {

/// The mark of round `number`: never 0, and another one than that of the round before.
inline std::byte mark_of(std::uint64_t number) noexcept { return static_cast<std::byte>(number % 255 + 1); }

inline bool has_arrived(mutable_bytes buffer, std::byte mark) noexcept {
  return std::atomic_ref(buffer.back()).load(std::memory_order_acquire) == mark;
}

}  // namespace iwarp::tools::perf
