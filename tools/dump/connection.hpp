// Part of iwarp-dump.
// One TCP connection: both directions in the order in which their ends must have seen them. A segment that acknowledges
// octets the capture has not shown yet waits for them, so that frames captured out of order still tell an answer after
// its question; when they do not come, they are a hole.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "tools/dump/tcp_half.hpp"
#include "tools/dump/tcp_segment.hpp"

namespace iwarp::dump {

/// Bounds of what waits.
struct reassembly_limits {
  std::size_t half_octets = 4 * 1024 * 1024;   // of one direction, behind a hole
  std::size_t all_octets = 128 * 1024 * 1024;  // of all connections
  std::size_t held_segments = 64;              // that acknowledge what was not captured
  std::size_t settle_segments = 16;            // looked at before a connection without SYN is given a beginning
  std::size_t connections = 16 * 1024;         // known at a time; the one longest silent goes first
};

class connection {
 public:
  connection(const reassembly_limits& limits, memory_use& memory, const tcp_segment& first);
  ~connection();

  /// What to do with a segment between these two endpoints.
  enum class verdict : std::uint8_t { taken, another_connection };
  /// `out` is told of whatever is now in order.
  verdict add(const tcp_segment& s, octet_consumer& out);
  /// The capture is over, or has moved on.
  void finish(frame_ref last, octet_consumer& out);

  /// The two ends as known now. While settled() is false they may still change places.
  [[nodiscard]] bool settled() const noexcept { return settled_; }
  [[nodiscard]] const endpoint& client() const noexcept { return client_; }
  [[nodiscard]] const endpoint& server() const noexcept { return server_; }
  /// The beginning of this direction, its SYN, is in the capture.
  [[nodiscard]] bool syn_seen(side s) const noexcept { return syn_seen_[index_of(s)]; }
  /// Octets of this side that the other has acknowledged, as far as the capture has come.
  [[nodiscard]] std::uint64_t acknowledged(side s) const noexcept { return acknowledged_[index_of(s)]; }
  /// Repeated octets are to be compared: it is iWARP.
  void remember();
  /// Nobody wants its octets: nothing of it is kept from now on.
  void ignore();
  [[nodiscard]] bool over() const noexcept { return halves_[0].ended() && halves_[1].ended(); }

  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

 private:
  /// A segment with octets of its own.
  struct held_segment {
    tcp_segment segment;
    std::vector<std::byte> octets;
  };

  [[nodiscard]] side side_of(const tcp_segment& s) const noexcept {
    return s.from == client_ ? side::client : side::server;
  }
  [[nodiscard]] tcp_half& half(side s) noexcept { return halves_[index_of(s)]; }
  [[nodiscard]] bool is_another(const tcp_segment& s) noexcept;
  void hold(const tcp_segment& s);
  [[nodiscard]] held_segment take_held(std::size_t at);
  void settle(octet_consumer& out);
  void pass(const tcp_segment& s, octet_consumer& out);
  [[nodiscard]] bool must_wait(const tcp_segment& s) noexcept;
  void process(const tcp_segment& s, octet_consumer& out);
  /// Passes held segments that need not wait any longer.
  void release(octet_consumer& out);
  /// Gives up what the oldest held segment waits for.
  void give_up(octet_consumer& out);

  const reassembly_limits& limits_;
  memory_use& memory_;
  endpoint client_;
  endpoint server_;
  std::array<tcp_half, 2> halves_;
  std::array<bool, 2> syn_seen_{};
  std::array<unsigned, 2> in_vain_{};  // segments that waited for octets of this side, none of which came
  std::array<std::uint64_t, 2> acknowledged_{};
  std::deque<held_segment> held_;
  std::size_t held_octets_ = 0;
  bool settled_ = false;
  bool ignored_ = false;
};

}  // namespace iwarp::dump
