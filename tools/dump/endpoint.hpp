// Part of iwarp-dump.
// One end of a TCP connection, and which of the two ends sent something.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace iwarp::dump {

struct endpoint {
  bool ipv6 = false;
  std::array<std::uint8_t, 16> address{};  // IPv4: the first four octets, the others 0
  std::uint16_t port = 0;
  bool operator==(const endpoint&) const = default;
};

/// "192.0.2.1:7174", "[2001:db8::1]:7174".
[[nodiscard]] std::string to_string(const endpoint& e);

/// The client sent the SYN; without one in the capture, the side that was seen first is called so.
enum class side : std::uint8_t { client, server };
[[nodiscard]] constexpr side other(side s) noexcept { return s == side::client ? side::server : side::client; }
[[nodiscard]] constexpr std::size_t index_of(side s) noexcept { return static_cast<std::size_t>(s); }

}  // namespace iwarp::dump
