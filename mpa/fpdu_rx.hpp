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
#include <system_error>

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
  /// `position`, a multiple of four, is for tests and captures that begin far into a stream.
  void start(bool crc, bool markers, std::uint64_t position = 0) noexcept;

  /// Where the next read may store octets, in stream order. Never empty while running; empty while held and after an
  /// error. The staging buffer behind it is shared: nobody else may use it until park(), and a window is never kept
  /// across a wait.
  [[nodiscard]] mutable_bytes window() noexcept;
  /// The first `n` octets of window() were filled. Hands up every whole FPDU.
  /// Errors: iwarp.mpa crc_mismatch, marker_mismatch; or the sink's. After an error every later call returns it again.
  result<status> commit(std::size_t n) noexcept;
  /// Offers again what the sink held, then everything behind it. May be called at any time but from within the sink.
  /// Errors: as commit().
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

 private:
  /// What the first octets of an FPDU say about all of it.
  struct extent {
    std::size_t lead;          // octets of the marker in front of ULPDU_Length: 0 or 4
    std::size_t ulpdu_size;    // ULPDU_Length
    std::size_t first_marker;  // from ULPDU_Length to the first marker behind it
    std::size_t total;         // on the wire: all markers, PAD and CRC included
  };

  [[nodiscard]] bool measure(const_bytes in, std::uint64_t position, extent& out) const noexcept;
  [[nodiscard]] result<> verify(const_bytes fpdu, const extent& e) const noexcept;
  result<status> hand_up(bool first_is_verified) noexcept;
  void move_to_staging() noexcept;
  void drop_everything() noexcept;
  [[nodiscard]] std::size_t unfinished() const noexcept { return end_ - begin_; }

  rx_memory& memory_;
  ulpdu_sink& sink_;
  // Octets received and not handed up: data_[begin_, end_), in the staging buffer or, while carry_ holds a buffer,
  // there.
  std::byte* data_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  rx_memory::carry carry_;
  std::uint64_t position_ = 0;  // stream position of data_[begin_], where an FPDU or its leading marker starts
  std::size_t last_total_ = 0;  // size of the FPDU handed up last: a guess at the next
  bool crc_ = true;
  bool markers_ = false;
  bool held_ = false;
  std::error_code error_;
  fpdu_counters counters_;
};

}  // namespace iwarp::mpa
