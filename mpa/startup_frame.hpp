// Internal to rdmap, mpa; tests and capture tools use it too.
// MPA Request and Reply frames, with the enhanced data of RFC 6581 (RFC 5044 s7.1.1, RFC 6581 s6, s9).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace iwarp::mpa {

inline constexpr std::size_t startup_fixed_size = 20;
inline constexpr std::size_t max_private_data = 512;  // on the wire, enhanced data included
inline constexpr std::size_t enhanced_data_size = 4;
inline constexpr std::size_t max_enhanced_ulp_data = max_private_data - enhanced_data_size;
inline constexpr std::uint16_t depth_not_negotiated = 0x3FFF;  // RFC 6581 s9.1: the ULP takes care
inline constexpr std::uint16_t max_depth = 0x3FFE;

enum class frame_kind : std::uint8_t { request, reply };

/// A set of RTR message types (RFC 6581 s9.2).
struct rtr_set {
  bool send = false;   // B
  bool write = false;  // C
  bool read = false;   // D
  [[nodiscard]] constexpr bool any() const noexcept { return send || write || read; }
  bool operator==(const rtr_set&) const = default;
};

/// The four octets in front of the private data when S=1.
struct enhanced_data {
  bool peer_to_peer = false;  // A
  rtr_set rtr{};
  std::uint16_t ird = 0;  // 0..0x3FFF
  std::uint16_t ord = 0;
  bool operator==(const enhanced_data&) const = default;

  static enhanced_data parse(std::span<const std::byte, enhanced_data_size> in) noexcept;
  void emit(std::span<std::byte, enhanced_data_size> out) const noexcept;
};

/// The fixed 20 octets.
struct startup_header {
  frame_kind kind = frame_kind::request;
  bool markers = false;   // M
  bool crc = true;        // C
  bool rejected = false;  // R
  bool enhanced = false;  // S; a reserved bit, read as 0, under revision 1
  std::uint8_t revision = 1;
  std::uint16_t private_data_length = 0;  // PD_Length, enhanced data included
  bool operator==(const startup_header&) const = default;

  /// Errors: bad_key, same_role (by `expected`), bad_revision (not 1 or 2), bad_private_data.
  static result<startup_header> parse(std::span<const std::byte, startup_fixed_size> in, frame_kind expected) noexcept;
  void emit(std::span<std::byte, startup_fixed_size> out) const noexcept;
};

/// A whole start-up frame. Private data is the ULP's: the enhanced data is split off.
struct startup_frame {
  startup_header header;
  std::optional<enhanced_data> enhanced;  // present iff header.enhanced
  std::array<std::byte, max_private_data> data{};
  std::size_t data_size = 0;

  [[nodiscard]] const_bytes private_data() const noexcept { return {data.data(), data_size}; }
  /// Writes the frame; header.private_data_length and header.enhanced are computed from the other members.
  /// Returns the octets of `out` used, at most 532.
  std::size_t emit(std::span<std::byte, startup_fixed_size + max_private_data> out) const noexcept;
};

/// Collects one start-up frame from any cut of the stream and never takes an octet behind it. Fails at the first octet
/// that cannot belong to the expected key, so that a peer of another protocol is told apart at once.
class startup_reader {
 public:
  explicit startup_reader(frame_kind expected) noexcept : expected_(expected) {}

  /// Takes octets; returns how many. Fewer than in.size() means the frame is complete.
  /// Errors: as startup_header::parse. After an error the reader stays failed.
  result<std::size_t> consume(const_bytes in) noexcept;
  [[nodiscard]] bool complete() const noexcept;
  [[nodiscard]] bool begun() const noexcept { return size_ != 0; }
  /// The frame; only once complete().
  [[nodiscard]] startup_frame frame() const noexcept;

 private:
  frame_kind expected_;
  std::size_t size_ = 0;
  startup_header header_;
  std::error_code error_;
  std::array<std::byte, startup_fixed_size + max_private_data> octets_{};
};

}  // namespace iwarp::mpa
