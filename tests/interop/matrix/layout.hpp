// Part of the interop matrix.
// Elements and contents of messages: both ends compute the same from a layout and a seed.
// Threading: free functions on the caller's memory.  Time: none.  I/O: none.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tests/interop/matrix/messages.hpp"

namespace iwarp::interop {

struct piece {
  std::uint64_t at = 0;
  std::uint32_t length = 0;
};

/// The elements of message `index`.
std::vector<piece> pieces_of(const layout& where, std::uint32_t index);
/// Octets from `at` on that a layout covers, gaps and the room behind the last message included.
std::uint64_t span_of(const layout& where);
/// A stride for messages of `size` octets: room for the gaps of 6 pieces, and every address modulo 8 in turn.
std::uint64_t stride_for(std::uint32_t size);

/// Message i gets the octets of seed + i.
void fill(mutable_bytes memory, const layout& where, std::uint64_t seed);
/// Marks what must not be written.
void poison(mutable_bytes memory, std::uint64_t at, std::uint64_t length);
/// The messages hold what fill() makes of the seed, and of the poisoned octets around and between them none has
/// changed. Empty, or what is wrong. Poisons the messages again.
std::string verify(mutable_bytes memory, const layout& where, std::uint64_t seed, std::uint64_t poisoned_at,
                   std::uint64_t poisoned_length);

}  // namespace iwarp::interop
