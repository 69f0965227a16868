// Part of iwarp-dump.
// MPA start-up frames as they are, broken ones included, and what is wrong with them (RFC 5044 s7.1, RFC 6581).
// mpa::startup_reader refuses what an endpoint must refuse; here it is to be shown.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tools/dump/events.hpp"

namespace iwarp::dump {

inline constexpr std::size_t startup_key_size = 16;

/// Index in `octets` of the first start-up key, and which; npos when there is none.
struct key_place {
  std::size_t at = std::string_view::npos;
  mpa::frame_kind kind = mpa::frame_kind::request;
};
[[nodiscard]] key_place find_key(const_bytes octets) noexcept;

/// A frame whose key is known to fit.
struct startup_fields {
  mpa::frame_kind kind = mpa::frame_kind::request;
  std::uint8_t flags = 0;
  std::uint8_t revision = 0;
  std::uint16_t private_data_length = 0;  // PD_Length
  std::optional<mpa::enhanced_data> enhanced;
  std::vector<std::byte> private_data;  // of the ULP
  std::vector<std::byte> wire;

  [[nodiscard]] bool markers() const noexcept { return (flags & 0x80) != 0; }
  [[nodiscard]] bool crc() const noexcept { return (flags & 0x40) != 0; }
  [[nodiscard]] bool rejected() const noexcept { return (flags & 0x20) != 0; }
  [[nodiscard]] bool enhanced_bit() const noexcept { return (flags & 0x10) != 0; }
};

/// Size of the frame by its fixed part, 20 octets: as PD_Length says, be that more than the 512 allowed.
[[nodiscard]] std::size_t startup_size(const_bytes fixed) noexcept;
/// `octets`: startup_size() octets.
[[nodiscard]] startup_fields parse_startup(const_bytes octets);

struct finding {
  std::string_view rule;
  std::string text;
};
[[nodiscard]] std::vector<finding> check_frame(const startup_fields& frame);
[[nodiscard]] std::vector<finding> check_pair(const startup_fields& request, const startup_fields& reply);
[[nodiscard]] agreement agree(const startup_fields& request, const startup_fields& reply);

}  // namespace iwarp::dump
