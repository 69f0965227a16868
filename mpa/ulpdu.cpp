#include "mpa/ulpdu.hpp"

#include "base/place.hpp"
#include "mpa/marker.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace iwarp::mpa {

ulpdu::ulpdu(const_bytes raw, std::size_t size, std::size_t first_marker, std::uint64_t stream_offset) noexcept
    : raw_(raw), size_(size), first_marker_(first_marker), stream_offset_(stream_offset) {
  const std::size_t head_size = std::min(size, max_head);
  if (first_marker >= length_field_size + head_size) {
    head_ = raw.subspan(length_field_size, head_size);
    return;  // the usual case, which leaves scratch_ untouched
  }
  const mutable_bytes whole_head{scratch_.data(), head_size};
  copy_to(0, whole_head);
  head_ = whole_head;
}

void ulpdu::copy_to(std::size_t offset, mutable_bytes out) const noexcept {
  assert(offset <= size_ && out.size() <= size_ - offset);
  // Positions among the FPDU's own octets (`own`), and where those lie between the markers (`at`).
  std::size_t own = length_field_size + offset;
  while (!out.empty()) {
    std::size_t at = own;
    std::size_t run = out.size();
    if (own < first_marker_) {
      run = std::min(run, first_marker_ - own);
    } else {
      const std::size_t behind = own - first_marker_;
      at += marker_size * (1 + behind / marker_gap);
      run = std::min(run, marker_gap - behind % marker_gap);
    }
    place(out.data(), raw_.data() + at, run);
    own += run;
    out = out.subspan(run);
  }
}

}  // namespace iwarp::mpa
