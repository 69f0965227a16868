// Part of iwarp-dump.
// How one direction of a stream is framed, as far as known, and what the first octets of an FPDU say about all of it.
// A capture may begin anywhere, so positions are told modulo the marker interval.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "mpa/marker.hpp"

namespace iwarp::dump {

struct framing {
  std::optional<bool> crc;      // nothing: not known yet
  std::optional<bool> markers;  // of this direction
  /// TCP stream offset, modulo 512, at which markers lie and full operation began. Nothing: the capture begins later.
  std::optional<std::uint32_t> phase;
  /// TCP stream offset, modulo 4, at which FPDUs begin.
  std::optional<std::uint32_t> alignment;

  void begins_at(std::uint64_t offset) noexcept {
    phase = static_cast<std::uint32_t>(offset % mpa::marker_interval);
    alignment = static_cast<std::uint32_t>(offset % 4);
  }

  /// Position of a TCP stream offset, modulo 512. Precondition: phase.
  [[nodiscard]] std::uint64_t position(std::uint64_t offset) const noexcept {
    return (offset + mpa::marker_interval - *phase) % mpa::marker_interval;
  }
};

/// Longest FPDU on the wire: 65535 + length, PAD, CRC, and its markers.
inline constexpr std::size_t max_fpdu = 65544 + 4 * 131;

struct extent {
  std::size_t lead = 0;          // octets of the marker in front of ULPDU_Length: 0 or 4
  std::size_t ulpdu_size = 0;    // ULPDU_Length
  std::size_t first_marker = 0;  // from ULPDU_Length to the first marker behind it; without markers beyond everything
  std::size_t body = 0;          // from ULPDU_Length to the end of PAD, markers included
  std::size_t total = 0;         // lead, body, a marker between PAD and CRC, CRC
};

/// `in` begins at the FPDU or its leading marker; `position`: its position, with markers. Nothing while ULPDU_Length is
/// not there.
[[nodiscard]] std::optional<extent> measure(const_bytes in, bool markers, std::uint64_t position) noexcept;

/// Copies up to out.size() ULPDU octets that `fpdu` (from ULPDU_Length on) has, without its markers; how many it had.
[[nodiscard]] std::size_t copy_ulpdu(const_bytes fpdu, const extent& e, mutable_bytes out) noexcept;

/// Segment headers as a sender of DDP and RDMAP version 1 makes them.
enum class likeness : std::uint8_t {
  none,     ///< no such header
  weak,     ///< versions, opcode and T fit: what a receiver insists on
  tagged,   ///< and reserved bits are 0: about 13 bits of evidence
  untagged  ///< and QN and length fit the opcode: about 41 bits
};
/// `head`: the first octets of a ULPDU, 2 at least, 10 for the full answer; `ulpdu_size`: its length.
[[nodiscard]] likeness likeness_of(const_bytes head, std::size_t ulpdu_size) noexcept;

}  // namespace iwarp::dump
