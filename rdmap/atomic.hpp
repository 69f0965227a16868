// Internal to rdmap; tests and capture tools use it too.
// The RFC 7306 messages behind the untagged header: Atomic Request and Response (s5.2), Immediate Data (s6).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/types.hpp"

namespace iwarp::rdmap {

inline constexpr std::size_t atomic_request_size = 52;
inline constexpr std::size_t atomic_response_size = 12;
inline constexpr std::size_t immediate_size = 8;

/// AOpCode (RFC 7306 figure 5). Other values are unassigned.
enum class atomic_opcode : std::uint8_t { fetch_add = 0, compare_swap = 2 };

/// Octets: 0..3 reserved and AOpCode (low nibble) | 4..7 Request Identifier | 8..11 Remote STag | 12..19 Remote TO |
/// 20..27 Add or Swap Data | 28..35 Add or Swap Mask | 36..43 Compare Data | 44..51 Compare Mask.
struct atomic_request {
  atomic_opcode op = atomic_opcode::fetch_add;
  std::uint32_t identifier = 0;
  stag remote{};
  std::uint64_t remote_offset = 0;
  std::uint64_t data = 0;
  std::uint64_t mask = 0;
  std::uint64_t compare = 0;
  std::uint64_t compare_mask = ~std::uint64_t{0};
  bool operator==(const atomic_request&) const = default;

  /// The 28 reserved bits are ignored; `op` may hold an unassigned value.
  static atomic_request parse(std::span<const std::byte, atomic_request_size> in) noexcept;
  void emit(std::span<std::byte, atomic_request_size> out) const noexcept;
};

/// Octets: 0..3 Original Request Identifier | 4..11 Original Remote Data Value.
struct atomic_response {
  std::uint32_t identifier = 0;
  std::uint64_t value = 0;
  bool operator==(const atomic_response&) const = default;

  static atomic_response parse(std::span<const std::byte, atomic_response_size> in) noexcept;
  void emit(std::span<std::byte, atomic_response_size> out) const noexcept;
};

}  // namespace iwarp::rdmap
