// Internal to rdmap, ddp, mpa.
// One verified ULPDU (RFC 5044 s4.1) as MPA hands it up, and the interface of whoever takes it (ddp implements it).
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <array>

namespace iwarp::mpa {

/// A ULPDU that is whole and, with CRC on, verified. It lies in a staging buffer that the receiver reuses: valid only
/// during the call it is passed to. Markers may run through it, so payload is reached by copy_to() alone: this is the
/// one copy of the data path.
class ulpdu {
 public:
  /// Longest contiguous head offered: an untagged header and the longest RDMAP header (18 + 52) fit.
  static constexpr std::size_t max_head = 72;

  /// `raw`: the FPDU's octets from its ULPDU_Length on, markers included, up to where PAD ends. `size`: ULPDU_Length.
  /// `first_marker`: distance from raw.data() to the first marker inside it; anything past raw.size() means none.
  ulpdu(const_bytes raw, std::size_t size, std::size_t first_marker, std::uint64_t stream_offset) noexcept;

  /// Octets of the ULPDU: markers, ULPDU_Length, PAD and CRC are not counted.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The first min(size(), max_head) octets, contiguous.
  [[nodiscard]] const_bytes head() const noexcept { return head_; }
  /// Copies out.size() octets starting `offset` octets into the ULPDU. offset + out.size() <= size().
  void copy_to(std::size_t offset, mutable_bytes out) const noexcept;
  /// Stream position of the FPDU's ULPDU_Length, counted from the start of full operation, markers included.
  [[nodiscard]] std::uint64_t stream_offset() const noexcept { return stream_offset_; }

  ulpdu(const ulpdu&) = delete;
  ulpdu& operator=(const ulpdu&) = delete;

 private:
  const_bytes raw_;
  std::size_t size_;
  std::size_t first_marker_;
  std::uint64_t stream_offset_;
  const_bytes head_;
  std::array<std::byte, max_head> scratch_;  // the head, when a marker cuts it
};

enum class ulpdu_answer {
  taken,  ///< done with it
  held,   ///< no resource for it now (no receive posted): offer the same ULPDU again when told to resume
};

/// What MPA must know of the layer above. Implemented in ddp/.
class ulpdu_sink {
 public:
  /// One ULPDU, in stream order. After an error no further ULPDU of this direction is offered (MPA-78).
  virtual result<ulpdu_answer> on_ulpdu(const ulpdu& unit) noexcept = 0;

 protected:
  ~ulpdu_sink() = default;
};

}  // namespace iwarp::mpa
