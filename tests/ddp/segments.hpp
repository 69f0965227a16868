// Internal to the tests of ddp and rdmap.
// Vectors written field by field, segments built from headers, and ULPDUs around them as MPA would hand them up.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "ddp/header.hpp"
#include "mpa/ulpdu.hpp"
#include "tests/support/hex.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace iwarp::ddp::test {

using octets = std::vector<std::byte>;

using test_support::from_hex;

/// One field of a vector: its name for the reader, and its octets.
struct field {
  const char* what;
  const char* octets;
};

inline octets join(const std::vector<field>& fields) {
  octets out;
  for (const field& f : fields) {
    const octets more = from_hex(f.octets);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

inline octets concat(std::initializer_list<const_bytes> parts) {
  octets out;
  for (const const_bytes part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

/// `size` octets first, first + 1, ... modulo 251: a piece shifted by any power of two shows.
inline octets pattern(std::size_t size, std::size_t first = 0) {
  octets out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>((first + i) % 251);
  return out;
}

inline octets emitted(const tagged_header& header) {
  std::array<std::byte, tagged_header_size> out;
  out.fill(std::byte{0xA5});
  header.emit(out);
  return {out.begin(), out.end()};
}

inline octets emitted(const untagged_header& header) {
  std::array<std::byte, untagged_header_size> out;
  out.fill(std::byte{0xA5});
  header.emit(out);
  return {out.begin(), out.end()};
}

inline octets segment_of(const tagged_header& header, const_bytes payload = {}) {
  return concat({emitted(header), payload});
}
inline octets segment_of(const untagged_header& header, const_bytes payload = {}) {
  return concat({emitted(header), payload});
}

/// A ULPDU in the FPDU that MPA found it in: ULPDU_Length, ULPDU, PAD; with `marker` one marker that many octets behind
/// the start of ULPDU_Length (one alone, so the ULPDU is shorter than the 512 octets between two).
class framed {
 public:
  static constexpr std::size_t no_marker = static_cast<std::size_t>(-1);

  explicit framed(const_bytes ulpdu, std::size_t marker = no_marker)
      : raw_((2 + ulpdu.size() + 3) / 4 * 4), size_(ulpdu.size()), marker_(marker) {
    store_be(std::span(raw_).first<2>(), static_cast<std::uint16_t>(size_));
    std::copy(ulpdu.begin(), ulpdu.end(), raw_.begin() + 2);
    if (marker_ <= raw_.size()) raw_.insert(raw_.begin() + static_cast<std::ptrdiff_t>(marker_), 4, std::byte{0xDD});
  }

  [[nodiscard]] mpa::ulpdu unit() const noexcept { return mpa::ulpdu(raw_, size_, marker_, 0); }

 private:
  octets raw_;
  std::size_t size_;
  std::size_t marker_;
};

}  // namespace iwarp::ddp::test
