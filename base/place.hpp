// Internal to all layers.
// The copy into memory that its owner may be watching while octets arrive.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <cstddef>
#include <cstring>

namespace iwarp {

/// Copies `size` octets; the two ranges do not overlap. The last octets, up to 64 and never fewer than 32 of a longer
/// range, are stored behind all others, in ascending order, and each of them once. Programs look at the last octet of a
/// message to see it arrive, and write there themselves as soon as it has: memcpy() stores the ends of a range in
/// pieces that overlap, so that the second of them undoes what such a program wrote.
inline void place(std::byte* to, const std::byte* from, std::size_t size) noexcept {
  constexpr std::size_t watched = 64;
  if (size > watched) {
    // What is left is 33 to 64 octets, and begins at a multiple of 32 of the range.
    const std::size_t body = (size - watched / 2 - 1) / 32 * 32;
    std::memcpy(to, from, body);
    to += body;
    from += body;
    size -= body;
    __atomic_thread_fence(__ATOMIC_RELEASE);
  }
  // The fences keep the compiler from making a memcpy() of it all.
  for (; size >= 16; size -= 16, to += 16, from += 16) {
    std::memcpy(to, from, 16);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
  const auto step = [&](std::size_t n) {
    std::memcpy(to, from, n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    to += n;
    from += n;
  };
  if ((size & 8) != 0) step(8);
  if ((size & 4) != 0) step(4);
  if ((size & 2) != 0) step(2);
  if ((size & 1) != 0) step(1);
}

}  // namespace iwarp
