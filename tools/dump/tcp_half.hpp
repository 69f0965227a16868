// Part of iwarp-dump.
// One direction of a TCP connection: segments in any order become octets in order. What came first stays where segments
// overlap; what is missing is waited for until somebody says skip_hole(). No library does this for a capture: it must
// know of holes, of frames cut short and of octets that came twice with another content, and its memory is bounded.
// (libtins' stream follower drops a connection at the first of those, and copies all of its payload.) Threading: not
// thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tools/dump/tcp_segment.hpp"

namespace iwarp::dump {

/// Octets that wait somewhere for others, of all connections together.
struct memory_use {
  std::size_t octets = 0;
};

class tcp_half {
 public:
  tcp_half(side from, memory_use& memory) noexcept : from_(from), memory_(memory) {}
  ~tcp_half() { memory_.octets -= waiting_octets_; }

  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// `first`: sequence number of the octet with offset 0.
  void begin(std::uint32_t first) noexcept {
    begun_ = true;
    base_ = first;
  }
  [[nodiscard]] std::uint32_t base() const noexcept { return base_; }

  /// Precondition: begun(). Hands on what is now in order.
  void add(const tcp_segment& s, octet_consumer& out);
  /// Gives up what is missing in front of the first octets that wait, or of the FIN; false when nothing waits.
  bool skip_hole(octet_consumer& out);
  /// The same, as far as `offset`, from which on octets are at hand elsewhere. Precondition: next() < offset.
  void skip_to(std::uint64_t offset, frame_ref frame, octet_consumer& out);
  /// Tells the end once. What waits is handed on first.
  void finish(ending how, frame_ref frame, octet_consumer& out);

  /// Offset of the next octet in order.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// Offset of the first octets that wait.
  [[nodiscard]] std::optional<std::uint64_t> first_waiting() const noexcept {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->first);
  }
  [[nodiscard]] std::size_t waiting_octets() const noexcept { return waiting_octets_; }
  /// How far beyond what is in order this acknowledgement of the peer goes; negative for an old one.
  [[nodiscard]] std::int64_t beyond(std::uint32_t acknowledged) const noexcept;
  /// From now on repeated octets are compared with what they repeat, as far as that is remembered.
  void remember() {
    if (!history_.empty() || ended_) return;
    history_.resize(history_size);
    history_from_ = next_;
  }

  tcp_half(const tcp_half&) = delete;
  tcp_half& operator=(const tcp_half&) = delete;

 private:
  static constexpr std::size_t history_size = 16 * 1024;
  static constexpr std::size_t piece_overhead = 128;  // of a piece that waits, on top of its octets

  struct piece {
    std::vector<std::byte> octets;
    std::size_t snapped = 0;  // octets behind them that the frame had and the capture has not
    frame_ref frame;
    [[nodiscard]] std::uint64_t size() const noexcept { return octets.size() + snapped; }
  };

  void hand_on(const_bytes octets, std::size_t snapped, frame_ref frame, octet_consumer& out);
  void hand_on_waiting(octet_consumer& out);
  void keep(std::uint64_t offset, const_bytes octets, std::size_t snapped, frame_ref frame, octet_consumer& out);
  void compare(std::uint64_t offset, const_bytes octets, frame_ref frame, octet_consumer& out) const;

  side from_;
  memory_use& memory_;
  bool begun_ = false;
  bool ended_ = false;
  std::uint32_t base_ = 0;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, piece> waiting_;  // by offset, disjoint, all beyond next_
  std::size_t waiting_octets_ = 0;
  std::optional<std::uint64_t> fin_at_;
  frame_ref fin_frame_;
  std::uint64_t history_from_ = 0;
  std::vector<std::byte> history_;  // octet at offset o: [o % history_size]
};

}  // namespace iwarp::dump
