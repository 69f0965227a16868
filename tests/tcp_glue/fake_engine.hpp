// Internal to tests/tcp_glue.
// A stream_engine without a protocol: sends what a test queues, collects what arrives, and notes every call.
// Threading: not thread-safe.  Time: ignored.  I/O: none.
#pragma once

#include "mpa/stream_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace iwarp::tcp_glue::test {

using octets = std::vector<std::byte>;

/// `size` octets that differ from their neighbours and, mostly, from those 256 further on.
inline octets pattern(std::size_t size, unsigned seed = 1) {
  octets out(size);
  std::uint32_t x = seed * 2654435761U + 1;
  for (auto& o : out) {
    x = x * 1664525U + 1013904223U;
    o = static_cast<std::byte>(x >> 24);
  }
  return out;
}

class fake_engine final : public mpa::stream_engine {
 public:
  explicit fake_engine(std::size_t window = 65536) : window_(window) {}

  // Script of the test.
  octets to_send;
  std::size_t piece_size = 1500;
  std::size_t pieces_per_window = 64;
  bool takes_octets = true;
  bool echo = false;                                      // sends back what arrives
  mpa::disposition want = mpa::disposition::keep;         // whenever asked
  mpa::disposition want_on_eof = mpa::disposition::keep;  // from the peer's FIN on
  std::size_t abort_at = SIZE_MAX;                        // abort once so many octets arrived
  timestamp deadline = never;

  // What happened.
  octets received;
  std::size_t sent = 0;
  unsigned calls = 0;
  unsigned windows = 0;
  unsigned parks = 0;
  unsigned eofs = 0;
  unsigned losses = 0;
  unsigned deadlines = 0;
  std::error_code lost_reason;
  std::vector<std::uint32_t> emss;
  bool unparked = false;
  bool octets_after_eof = false;

  mutable_bytes rx_window() noexcept override {
    ++calls;
    ++windows;
    unparked = true;
    return takes_octets ? mutable_bytes(window_) : mutable_bytes();
  }
  void rx_commit(std::size_t n, timestamp) noexcept override {
    ++calls;
    octets_after_eof |= eofs > 0 || losses > 0;
    received.insert(received.end(), window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(n));
    if (echo) to_send.insert(to_send.end(), window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(n));
    if (received.size() >= abort_at) want = mpa::disposition::abort;
  }
  void rx_park(timestamp) noexcept override {
    ++calls;
    ++parks;
    unparked = false;
  }
  void handle_eof(timestamp) noexcept override {
    ++calls;
    ++eofs;
    want = std::max(want, want_on_eof);
  }
  void handle_lost(std::error_code reason, timestamp) noexcept override {
    ++calls;
    ++losses;
    lost_reason = reason;
  }
  void handle_emss(std::uint32_t value) noexcept override {
    ++calls;
    emss.push_back(value);
  }
  void handle_deadline(timestamp) noexcept override {
    ++calls;
    ++deadlines;
    deadline = never;
  }
  std::span<const gather_piece> tx_window(timestamp) noexcept override {
    ++calls;
    pieces_.clear();
    for (std::size_t at = sent; at < to_send.size() && pieces_.size() < pieces_per_window;) {
      const std::size_t n = std::min(piece_size, to_send.size() - at);
      pieces_.push_back({to_send.data() + at, n});
      at += n;
    }
    return pieces_;
  }
  void tx_advance(std::size_t n, timestamp) noexcept override {
    ++calls;
    sent += n;
  }
  [[nodiscard]] bool wants_read() const noexcept override { return takes_octets; }
  [[nodiscard]] timestamp next_deadline() const noexcept override { return deadline; }
  [[nodiscard]] mpa::disposition wants() const noexcept override { return want; }

 private:
  octets window_;
  std::vector<gather_piece> pieces_;
};

}  // namespace iwarp::tcp_glue::test
