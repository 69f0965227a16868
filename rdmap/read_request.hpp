// Internal to rdmap; tests and capture tools use it too.
// The 28 octets of an RDMA Read Request behind the untagged header (RFC 5040 s4.4).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/types.hpp"

#include <cstdint>

namespace iwarp::rdmap {

inline constexpr std::size_t read_request_size = 28;

/// Octets: 0..3 SinkSTag | 4..11 SinkTO | 12..15 RDMARDSZ | 16..19 SrcSTag | 20..27 SrcTO.
struct read_request {
  stag sink{};
  std::uint64_t sink_offset = 0;
  std::uint32_t size = 0;
  stag source{};
  std::uint64_t source_offset = 0;
  bool operator==(const read_request&) const = default;

  static read_request parse(std::span<const std::byte, read_request_size> in) noexcept;
  void emit(std::span<std::byte, read_request_size> out) const noexcept;
};

}  // namespace iwarp::rdmap
