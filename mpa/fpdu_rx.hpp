// Internal to rdmap, ddp, mpa.
// Receiving half of MPA in full operation: finds FPDUs in any cut of the stream, verifies each whole, strips markers,
// hands ULPDUs up (RFC 5044 s4, s5.2, s6). Nothing of an FPDU is passed up before all of it is here and its CRC is
// good. Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "mpa/rx_memory.hpp"
#include "mpa/ulpdu.hpp"

#include <cstdint>

namespace iwarp::mpa {

struct fpdu_counters {
  std::uint64_t fpdus = 0;
  std::uint64_t octets = 0;  // of the TCP stream, in full operation
};

class fpdu_rx {
 public:
  enum class status {
    running,  ///< everything offered was taken, or an unfinished FPDU waits for more octets
    held,     ///< the sink holds an FPDU: offer no more octets until resume() says running
  };

  /// Both must outlive this object.
  fpdu_rx(rx_memory& memory, ulpdu_sink& sink) noexcept;
  ~fpdu_rx();

  /// Enters full operation at stream position 0. `crc`: verify; `markers`: the peer inserts them (we sent M=1).
  void start(bool crc, bool markers) noexcept;

  /// Where the next read may store octets, in stream order. Never empty while running. The staging buffer behind it is
  /// shared: nobody else may use it until park(), and a window is never kept across a wait.
  [[nodiscard]] mutable_bytes window() noexcept;
  /// The first `n` octets of window() were filled. Hands up every whole FPDU.
  /// Errors: iwarp.mpa crc_mismatch, marker_mismatch; or the sink's. After an error every later call returns it again.
  result<status> commit(std::size_t n) noexcept;
  /// Offers again what the sink held. May be called at any time.
  result<status> resume() noexcept;
  /// Ends a turn: what is unfinished leaves the shared staging buffer for a buffer of this connection.
  void park() noexcept;

  /// Push form, for sources that own their octets. Returns how many it took: all of `in`, or fewer once held.
  /// Includes the park().
  result<std::size_t> consume(const_bytes in) noexcept;

  /// True when the stream is inside an FPDU (or its marker): a FIN here is a lost connection (RFC 5044 s7.2).
  [[nodiscard]] bool mid_fpdu() const noexcept;
  [[nodiscard]] const fpdu_counters& counters() const noexcept;

  fpdu_rx(const fpdu_rx&) = delete;
  fpdu_rx& operator=(const fpdu_rx&) = delete;
};

}  // namespace iwarp::mpa
