// Internal to rdmap, ddp, mpa.
// Sending half of MPA in full operation: frames one ULPDU after another into a gather list, with ULPDU_Length, PAD,
// CRC32c and, when the peer asked for them, markers (RFC 5044 s4).
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "mpa/tx_batch.hpp"

#include <cstdint>
#include <span>

namespace iwarp::mpa {

class fpdu_tx {
 public:
  /// Enters full operation at stream position 0. `crc`: generate (else the CRC field is 0); `markers`: the peer sent
  /// M=1. `position`, a multiple of four, is for tests and captures that begin far into a stream.
  void start(bool crc, bool markers, std::uint64_t position = 0) noexcept;

  /// Frames one ULPDU: `header` (always copied), then the payload pieces in order. The caller has asked
  /// batch.has_room(). 1 <= header.size() + payload <= 65535; the caller keeps it within MULPDU. Next to payload the
  /// header has at most tx_batch::max_header octets. Payload pieces up to tx_batch::copy_limit are copied (as long as
  /// copies stay within tx_batch::copy_total), larger ones must stay as they are until the batch has advanced over
  /// them.
  void frame(tx_batch& batch, const_bytes header, std::span<const const_bytes> payload) noexcept;

  /// Stream octets framed so far, markers included, counted from the start of full operation.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] bool markers() const noexcept { return markers_; }

 private:
  std::uint64_t position_ = 0;
  bool crc_ = true;
  bool markers_ = false;
};

}  // namespace iwarp::mpa
