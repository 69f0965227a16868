// Internal to tcp_glue and verbs.
// Moves octets between one connection's engine and its transport, and carries out what the engine wants done with TCP.
// Threading: not thread-safe; one caller at a time.  Time: passed in.  I/O: the transport's, never blocks.
#pragma once

#include "mpa/stream_engine.hpp"
#include "tcp_glue/transport.hpp"

#include <cstdint>
#include <limits>

namespace iwarp::tcp_glue {

/// How its owner runs it:
///   - after whatever may have changed the engine (a post, a deadline, pump_rx) call pump_tx();
///   - call pump_rx() when the transport is readable, or to poll;
///   - before sleeping wait for readability if rx_wanted(), for writability if tx_blocked(), and for the engine's
///     next_deadline(). Then no wait returns at once again and again: neither while the engine takes no octets, nor
///     after the peer's FIN.
class driver {
 public:
  enum class rx_result : std::uint8_t {
    drained,  ///< all that had arrived was taken
    budget,   ///< stopped at the budget; more may be there
    blocked,  ///< the engine wants no octets now: the peer is left to TCP's window
    ended,    ///< nothing more will be read: the peer's FIN was passed on, or the connection is closed
  };
  enum class tx_result : std::uint8_t {
    drained,  ///< all was handed to TCP
    budget,   ///< stopped at the budget; the engine has more
    blocked,  ///< TCP takes no more now: tx_blocked()
    ended,    ///< the connection is closed
  };
  static constexpr std::size_t no_budget = std::numeric_limits<std::size_t>::max();

  /// Both must outlive this object.
  driver(transport& transport, mpa::stream_engine& engine) noexcept : transport_(transport), engine_(engine) {}

  /// Reads until nothing more is there, or at least `budget` octets were taken, so that one fast peer does not keep the
  /// others waiting. Parks the engine.
  rx_result pump_rx(timestamp now, std::size_t budget) noexcept;
  /// Writes what the engine has, at least `budget` octets if it has them, and then shuts down, closes or aborts as the
  /// engine wants.
  tx_result pump_tx(timestamp now, std::size_t budget = no_budget) noexcept;

  /// The transport said, unasked, that the connection is lost.
  void handle_lost(std::error_code reason, timestamp now) noexcept {
    if (!closed_) lose(reason, now);
  }

  /// A wait for readability makes sense.
  [[nodiscard]] bool rx_wanted() const noexcept { return !closed_ && !rx_ended_ && engine_.wants_read(); }
  /// The last pump_tx() ended because TCP took no more.
  [[nodiscard]] bool tx_blocked() const noexcept { return tx_blocked_; }
  /// The transport is closed, by the engine's wish or because it was lost. Neither it nor the engine is touched again.
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// FIN was sent.
  [[nodiscard]] bool write_shut() const noexcept { return write_shut_; }
  /// The peer's FIN was passed to the engine.
  [[nodiscard]] bool read_ended() const noexcept { return rx_ended_; }
  [[nodiscard]] std::uint64_t octets_received() const noexcept { return octets_received_; }
  [[nodiscard]] std::uint64_t octets_sent() const noexcept { return octets_sent_; }

  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;

 private:
  rx_result read_loop(timestamp now, std::size_t budget) noexcept;
  tx_result nothing_to_send() noexcept;
  bool abort_if_wanted() noexcept;
  void lose(std::error_code reason, timestamp now) noexcept;
  void refresh_emss() noexcept;

  transport& transport_;
  mpa::stream_engine& engine_;
  std::uint64_t octets_received_ = 0;
  std::uint64_t octets_sent_ = 0;
  std::uint64_t emss_due_at_ = 0;  // octets_sent_ from which the EMSS is asked for again
  std::uint32_t emss_ = 0;         // as last told to the engine; 0: never told
  std::uint8_t calls_to_emss_ = 0;
  bool tx_blocked_ = false;
  bool write_shut_ = false;
  bool rx_ended_ = false;
  bool closed_ = false;
};

}  // namespace iwarp::tcp_glue
