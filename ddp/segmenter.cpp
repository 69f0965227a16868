#include "ddp/segmenter.hpp"

#include <algorithm>
#include <cassert>

namespace iwarp::ddp {

void segmenter::begin(const tagged_header& header, std::uint32_t size) noexcept {
  assert(done_);
  done_ = false;
  tagged_ = true;
  size_ = size;
  sent_ = 0;
  tagged_header_ = header;
}

void segmenter::begin(const untagged_header& header, std::uint32_t size) noexcept {
  assert(done_);
  assert(header.queue < sequence_.size());
  done_ = false;
  tagged_ = false;
  size_ = size;
  sent_ = 0;
  untagged_header_ = header;
  // RFC 5041 s4.3: the MSN of each queue grows by one per message and MUST be the same on all segments of a message.
  untagged_header_.sequence = sequence_[header.queue];
  ++sequence_[header.queue];
}

std::uint32_t segmenter::next_size(std::uint32_t mulpdu) const noexcept {
  assert(mulpdu > header_size());
  // RFC 5041 s5.2: header and payload together MUST fit MULPDU.
  return std::min(size_ - sent_, mulpdu - static_cast<std::uint32_t>(header_size()));
}

segment segmenter::next(std::uint32_t mulpdu) noexcept {
  assert(!done_);
  segment cut;
  cut.header_size = header_size();
  cut.payload_offset = sent_;
  cut.payload_size = next_size(mulpdu);
  // RFC 5041 s4.1: L is set on the segment that holds the end of the message, and on no other. A zero-length message
  // is that one segment alone (s5.2).
  cut.last = cut.payload_size == size_ - sent_;
  // RFC 5041 s5.2: TO or MO of a segment is that of the message plus the octets in earlier segments.
  if (tagged_) {
    tagged_header header = tagged_header_;
    header.last = cut.last;
    header.offset += sent_;
    header.emit(std::span(cut.header).first<tagged_header_size>());
  } else {
    untagged_header header = untagged_header_;
    header.last = cut.last;
    header.offset = sent_;
    header.emit(cut.header);
  }
  sent_ += cut.payload_size;
  done_ = cut.last;
  return cut;
}

}  // namespace iwarp::ddp
