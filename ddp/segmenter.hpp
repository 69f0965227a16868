// Internal to rdmap, ddp.
// The data source of DDP (RFC 5041 s5.2): cuts one message after another into segments that fit MULPDU, in increasing
// offset, L on the last. Headers of the layer above (Read Request, Terminate) are passed as payload.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "ddp/header.hpp"

#include <array>
#include <cstdint>

namespace iwarp::ddp {

/// One segment of the message in progress: its header's octets, and which run of the message's payload it carries.
struct segment {
  std::array<std::byte, untagged_header_size> header;
  std::size_t header_size = 0;
  std::uint32_t payload_offset = 0;  ///< octets of the message before this segment
  std::uint32_t payload_size = 0;
  bool last = false;
};

class segmenter {
 public:
  /// Begins a message of `size` octets (0..2^32-1). Precondition: done(). `header.last` and the offsets of later
  /// segments are this class's business; header.offset is the message's first TO.
  void begin(const tagged_header& header, std::uint32_t size) noexcept;
  /// Likewise untagged: header.sequence is taken from, and advances, the MSN counter of header.queue; header.offset is
  /// 0.
  void begin(const untagged_header& header, std::uint32_t size) noexcept;

  /// No message is in progress: the last segment of the one begun was taken.
  [[nodiscard]] bool done() const noexcept { return done_; }
  /// Payload octets that the next segment will carry under this MULPDU (>= 128, from mpa::mulpdu).
  [[nodiscard]] std::uint32_t next_size(std::uint32_t mulpdu) const noexcept;
  [[nodiscard]] std::size_t header_size() const noexcept { return tagged_ ? tagged_header_size : untagged_header_size; }
  /// Cuts the next segment. Precondition: !done().
  segment next(std::uint32_t mulpdu) noexcept;

  /// MSN that the next message on `queue` will carry.
  [[nodiscard]] msn next_sequence(std::uint32_t queue) const noexcept { return sequence_[queue]; }
  /// For tests of wrap-around.
  void set_next_sequence(std::uint32_t queue, msn next) noexcept { sequence_[queue] = next; }

 private:
  bool done_ = true;
  bool tagged_ = false;
  std::uint32_t size_ = 0;
  std::uint32_t sent_ = 0;
  tagged_header tagged_header_;
  untagged_header untagged_header_;
  std::array<msn, 4> sequence_{};
};

}  // namespace iwarp::ddp
