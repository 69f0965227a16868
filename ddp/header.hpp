// Internal to rdmap, ddp; tests and capture tools use it too.
// The two DDP segment headers (RFC 5041 s4).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

#include <cstdint>

namespace iwarp::ddp {

inline constexpr std::size_t tagged_header_size = 14;
inline constexpr std::size_t untagged_header_size = 18;
inline constexpr std::uint8_t tagged_bit = 0x80;    // T
inline constexpr std::uint8_t last_bit = 0x40;      // L
inline constexpr std::uint8_t version_mask = 0x03;  // DV
inline constexpr std::uint8_t version = 1;

/// True when the segment that begins with this octet is tagged.
[[nodiscard]] constexpr bool is_tagged(std::byte control) noexcept {
  return (std::to_integer<std::uint8_t>(control) & tagged_bit) != 0;
}

/// Tagged DDP header. Octets from the start of the ULPDU:
/// 0 control | 1 RsvdULP (RDMAP control) | 2..5 STag | 6..13 TO.   RFC 5041 s4.2
struct tagged_header {
  bool last = true;
  std::uint8_t ulp_control = 0;
  iwarp::stag stag{};
  std::uint64_t offset = 0;  // TO
  bool operator==(const tagged_header&) const = default;

  /// Errors, in this order: segment_too_short for an empty segment, tagged_bad_version, segment_too_short.
  /// Reserved bits are ignored. Precondition: T is set in the first octet, if there is one.
  static result<tagged_header> parse(const_bytes in) noexcept;
  void emit(std::span<std::byte, tagged_header_size> out) const noexcept;
};

/// Untagged DDP header. Octets from the start of the ULPDU:
/// 0 control | 1 RsvdULP (RDMAP control) | 2..5 RsvdULP (Invalidate STag) | 6..9 QN | 10..13 MSN | 14..17 MO.  RFC 5041
/// s4.3
struct untagged_header {
  bool last = true;
  std::uint8_t ulp_control = 0;
  iwarp::stag invalidate{};  // RsvdULP octets 2..5
  std::uint32_t queue = 0;   // QN
  iwarp::msn sequence{};     // MSN
  std::uint32_t offset = 0;  // MO
  bool operator==(const untagged_header&) const = default;

  /// Errors as tagged_header::parse, with untagged_bad_version. Precondition: T is clear in the first octet.
  static result<untagged_header> parse(const_bytes in) noexcept;
  void emit(std::span<std::byte, untagged_header_size> out) const noexcept;
};

}  // namespace iwarp::ddp
