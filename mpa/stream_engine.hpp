// Internal to tcp_glue and rdmap.
// The port through which a TCP drives one connection's engine. MPA declares it so that the glue knows nothing of the
// layers above (rdmap::stream implements it). All octets of the connection pass here, start-up frames included.
// Threading: not thread-safe; one caller at a time.  Time: passed in.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/types.hpp"

#include <cstdint>
#include <span>
#include <system_error>

namespace iwarp::mpa {

/// What the engine wants done with the TCP connection. Only ever moves down this list.
enum class disposition : std::uint8_t {
  keep,            ///< go on
  shutdown_write,  ///< once tx_window() is empty send FIN; keep reading
  close,           ///< once tx_window() is empty close gracefully; the engine needs nothing more
  abort,           ///< reset the connection now, whatever is queued
};

class stream_engine {
 public:
  // Inputs ------------------------------------------------------------------------------------------------------
  /// Where the next read may store octets, in stream order. Empty when the engine does not want octets now.
  /// Shared memory lies behind it: no other engine of the domain may be asked before park().
  virtual mutable_bytes rx_window() noexcept = 0;
  /// The first `n` octets of rx_window() were filled.
  virtual void rx_commit(std::size_t n, timestamp now) noexcept = 0;
  /// Ends the turn of reading. Must follow the last rx_commit() before the glue waits or serves another engine.
  virtual void rx_park(timestamp now) noexcept = 0;
  /// The peer sent FIN; everything before it has been committed.
  virtual void handle_eof(timestamp now) noexcept = 0;
  /// The connection is lost (reset, time-out): nothing more can be sent or received.
  virtual void handle_lost(std::error_code reason, timestamp now) noexcept = 0;
  /// Effective maximum segment size of the TCP changed. Octets.
  virtual void handle_emss(std::uint32_t emss) noexcept = 0;
  /// next_deadline() has passed.
  virtual void handle_deadline(timestamp now) noexcept = 0;

  // Outputs -----------------------------------------------------------------------------------------------------
  /// Octets to send, in order; empty when there is nothing. Valid until the next call. Frames more as it is drained.
  virtual std::span<const gather_piece> tx_window(timestamp now) noexcept = 0;
  /// TCP took the first `n` octets of tx_window(): their memory may be reused.
  virtual void tx_advance(std::size_t n, timestamp now) noexcept = 0;
  /// False while the engine wants no octets (no receive posted): leave them to TCP's window.
  [[nodiscard]] virtual bool wants_read() const noexcept = 0;
  /// Earliest time at which handle_deadline() is due; `never` for none.
  [[nodiscard]] virtual timestamp next_deadline() const noexcept = 0;
  [[nodiscard]] virtual disposition wants() const noexcept = 0;

 protected:
  ~stream_engine() = default;
};

}  // namespace iwarp::mpa
