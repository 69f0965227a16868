// Public API.
// CRC32c (Castagnoli) as MPA uses it: reflected 0x82F63B78, initial value and final XOR all ones (RFC 5044 s4.4).
// ISA-L does the long runs, an SSE4.2 loop the short ones where the processor has it.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <cstdint>

namespace iwarp::mpa {

/// CRC of `data` continued from `crc`, the finished CRC of what precedes it (0 for nothing).
/// crc32c(b, crc32c(a)) == crc32c(a followed by b). Any length.
[[nodiscard]] std::uint32_t crc32c(const_bytes data, std::uint32_t crc = 0) noexcept;

}  // namespace iwarp::mpa
