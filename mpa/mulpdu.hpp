// Internal to rdmap, ddp, mpa.
// MULPDU: the largest ULPDU that fits the TCP's segment (RFC 5044 s4.5).
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace iwarp::mpa {

inline constexpr std::uint32_t min_mulpdu = 128;    // RFC 5044 s3: never reported below
inline constexpr std::uint32_t max_mulpdu = 64768;  // RFC 5044 s3: never above

/// `emss`: octets of the TCP's effective maximum segment. Always within [min_mulpdu, max_mulpdu].
[[nodiscard]] constexpr std::uint32_t mulpdu(std::uint32_t emss, bool markers) noexcept {
  const std::uint32_t overhead = markers ? 6 + 4 * ((emss + 511) / 512) + emss % 4 : 6 + emss % 4;
  return emss <= overhead ? min_mulpdu : std::clamp(emss - overhead, min_mulpdu, max_mulpdu);
}

}  // namespace iwarp::mpa
