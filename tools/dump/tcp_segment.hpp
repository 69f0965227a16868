// Part of iwarp-dump.
// One TCP segment as captured, and the interface through which the octets of a connection are told in order.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"
#include "tools/dump/endpoint.hpp"
#include "tools/dump/events.hpp"
#include "tools/dump/ip_packet.hpp"

namespace iwarp::dump {

struct tcp_segment {
  endpoint from;
  endpoint to;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  bool syn = false;
  bool ack = false;
  bool fin = false;
  bool rst = false;
  const_bytes payload{};   // as far as captured
  std::size_t length = 0;  // of the payload on the wire
  frame_ref frame{};

  /// Sequence number of the first octet of payload: a SYN takes one.
  [[nodiscard]] std::uint32_t first() const noexcept { return sequence + (syn ? 1u : 0u); }
};

/// Nothing when the header is damaged or was not captured whole.
[[nodiscard]] std::optional<tcp_segment> parse_segment(const ip_payload& ip, frame_ref frame) noexcept;

enum class hole_kind : std::uint8_t {
  missing,  ///< no frame of the capture has these octets
  snapped,  ///< the frame was captured only in part (snap length)
};

enum class ending : std::uint8_t { fin, reset, capture_end };

/// Takes each direction of one connection in order, each octet once.
class octet_consumer {
 public:
  virtual void on_octets(side from, std::uint64_t offset, const_bytes octets, frame_ref frame) = 0;
  /// The next `size` octets are not there.
  virtual void on_hole(side from, std::uint64_t offset, std::uint64_t size, hole_kind kind, frame_ref frame) = 0;
  /// Octets came again with another content. The first ones stay.
  virtual void on_overlap(side from, std::uint64_t offset, std::uint64_t size, frame_ref frame) = 0;
  virtual void on_end(side from, ending how, frame_ref frame) = 0;

 protected:
  ~octet_consumer() = default;
};

}  // namespace iwarp::dump
