// Part of iwarp-perf.
// What a client asks of the server, in the private data of the MPA Request, and what the server answers in that of the
// Reply: a buffer each, so that no control message is needed before the load begins.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::tools::perf {

inline constexpr std::uint16_t default_port = 7176;
inline constexpr std::uint64_t max_size = std::uint64_t{64} << 20;
inline constexpr std::uint64_t max_depth = 16384;
inline constexpr std::uint16_t read_depth = 128;  ///< Reads on their way at once
inline constexpr std::uint32_t max_inline = 256;  ///< smaller messages are posted inline

enum class operation : std::uint8_t { write = 1, read = 2, send = 3 };
std::string_view to_string(operation op) noexcept;

/// 0..3 "IWPF" | 4 version 1 | 5 operation | 6 latency 0/1 | 7 zero | 8..11 size | 12..15 depth | 16..19 STag |
/// 20..27 address of the client's buffer, which the server writes to in a ping-pong of Writes.
struct parameters {
  operation op = operation::write;
  bool latency = false;
  std::uint32_t size = 0;
  std::uint32_t depth = 0;
  verbs::remote_buffer buffer;

  static constexpr std::size_t octets = 28;
  void emit(std::span<std::byte, octets> out) const noexcept;
  /// Nothing when these are not the private data of an iwarp-perf client, or out of range.
  static std::optional<parameters> parse(const_bytes in) noexcept;
};

/// 0..3 "IWPF" | 4 version 1 | 5..7 zero | 8..11 STag | 12..19 address of the server's buffer of `size` octets.
struct grant {
  verbs::remote_buffer buffer;

  static constexpr std::size_t octets = 20;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static std::optional<grant> parse(const_bytes in) noexcept;
};

}  // namespace iwarp::tools::perf
