// Internal to mpa.
// Where markers lie and how long FPDUs are (RFC 5044 s4.1, s4.2, s4.3). Positions count the octets of one direction,
// markers included, from the start of full operation; 64 bits never wrap.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <cstdint>

namespace iwarp::mpa {

inline constexpr std::size_t marker_interval = 512;  // a marker starts at every multiple of this position
inline constexpr std::size_t marker_size = 4;
inline constexpr std::size_t marker_gap = marker_interval - marker_size;  // octets of FPDUs between two markers
inline constexpr std::size_t length_field_size = 2;
inline constexpr std::size_t crc_field_size = 4;

/// ULPDU_Length field, ULPDU and PAD: a multiple of four (RFC 5044 s4.1).
[[nodiscard]] constexpr std::size_t padded_size(std::size_t ulpdu_size) noexcept {
  return (length_field_size + ulpdu_size + 3) & ~std::size_t{3};
}

/// A marker starts at `position`. Only ever true at multiples of four, so it splits neither ULPDU_Length nor CRC.
[[nodiscard]] constexpr bool marker_due(std::uint64_t position) noexcept { return position % marker_interval == 0; }

/// Octets from `position` to the next marker behind it: 1..512.
[[nodiscard]] constexpr std::size_t marker_distance(std::uint64_t position) noexcept {
  return marker_interval - static_cast<std::size_t>(position % marker_interval);
}

/// Markers that run through `size` octets of an FPDU, the first of them due after `first` octets. One that would come
/// right behind the last octet is not counted: it belongs to the next FPDU (RFC 5044 s4.3).
[[nodiscard]] constexpr std::size_t markers_within(std::size_t size, std::size_t first) noexcept {
  return size > first ? 1 + (size - first - 1) / marker_gap : 0;
}

/// FPDUPTR for a marker `distance` octets behind its ULPDU_Length. A legal ULPDU (64768 octets) never needs more than
/// 16 bits; one of 65535 octets wraps.
[[nodiscard]] constexpr std::uint16_t fpdu_pointer(std::size_t distance) noexcept {
  return static_cast<std::uint16_t>(distance & 0xFFFC);
}

/// FPDUPTR as received: the reserved half is ignored and the low two bits are taken as zero (RFC 5044 s4.2).
[[nodiscard]] inline std::uint16_t received_fpdu_pointer(std::span<const std::byte, marker_size> marker) noexcept {
  return static_cast<std::uint16_t>(load_be<std::uint16_t>(marker.subspan<2, 2>()) & 0xFFFC);
}

}  // namespace iwarp::mpa
