// Internal to verbs, rdmap.
// What a consumer posts, as the stream keeps it: the ring of send requests with their scatter/gather elements and
// inline data, and the slot of a receive request (VERBS s8.1-8.2, names as in libibverbs).
// Threading: a slot belongs to the poster until submitted, then to the stream.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/types.hpp"

namespace iwarp::rdmap {

/// One scatter/gather element: `length` octets at `address` inside the memory region that `key` (its STag) names.
struct sge {
  void* address = nullptr;
  std::uint32_t length = 0;
  stag key = {};
};

enum class operation : std::uint8_t {
  send,
  send_invalidate,
  send_solicited,
  send_solicited_invalidate,
  write,
  read,
  local_invalidate,
};

/// How a request ended.
enum class wr_status : std::uint8_t {
  success,
  flushed,                 ///< the stream ended before the request was carried out
  local_length,            ///< receive: the message was longer than the buffer
  local_protection,        ///< an SGE names memory that does not exist, lacks the right, or is too short
  local_qp_operation,      ///< the request itself cannot be carried out (Read with ORD 0, invalidate of a bad STag)
  remote_access,           ///< the peer refused access to its memory (its Terminate said so)
  remote_operation,        ///< the peer could not carry the request out
  remote_invalid_request,  ///< the peer found the request invalid; on a receive: the peer's invalidate was refused
  bad_response,            ///< the peer's Read Response did not match the request
};

struct work_request {
  std::uint64_t id = 0;
  operation op = operation::send;
  bool signaled = true;
  bool fence = false;        ///< do not start before all earlier Reads have completed
  bool inline_data = false;  ///< the payload is in the ring's inline storage
  bool read_done = false;    // stream: the response was delivered
  stag remote = {};          ///< Write: target; Read: source
  std::uint64_t remote_offset = 0;
  stag invalidate = {};      ///< send_*_invalidate, local_invalidate
  std::uint32_t length = 0;  ///< sum of the elements
  std::uint16_t sge_count = 0;
  msn sequence = {};               // stream: MSN of a Send
  std::uint64_t end_position = 0;  // stream: octets framed when its last segment was
};

/// Fixed storage of one send queue. Slots are addressed by a running index, modulo the depth.
class send_ring {
 public:
  /// `depth` >= 1 requests, each of at most `max_sge` elements and `max_inline` octets. Allocates; later nothing does.
  send_ring(std::uint32_t depth, std::uint32_t max_sge, std::uint32_t max_inline)
      : depth_(depth),
        max_sge_(max_sge),
        max_inline_(max_inline),
        requests_(depth),
        elements_(std::size_t{depth} * max_sge),
        inline_data_(std::size_t{depth} * max_inline) {}

  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint32_t max_sge() const noexcept { return max_sge_; }
  [[nodiscard]] std::uint32_t max_inline() const noexcept { return max_inline_; }
  [[nodiscard]] work_request& operator[](std::uint64_t index) noexcept { return requests_[slot(index)]; }
  /// Room for max_sge elements; the request's sge_count says how many count.
  [[nodiscard]] std::span<sge> elements(std::uint64_t index) noexcept {
    return {elements_.data() + slot(index) * max_sge_, max_sge_};
  }
  /// Room for max_inline octets; the request's length says how many count.
  [[nodiscard]] mutable_bytes inline_data(std::uint64_t index) noexcept {
    return {inline_data_.data() + slot(index) * max_inline_, max_inline_};
  }

 private:
  [[nodiscard]] std::size_t slot(std::uint64_t index) const noexcept {
    return static_cast<std::size_t>(index % depth_);
  }

  std::uint32_t depth_;
  std::uint32_t max_sge_;
  std::uint32_t max_inline_;
  std::vector<work_request> requests_;
  std::vector<sge> elements_;
  std::vector<std::byte> inline_data_;
};

/// A posted receive that the stream has taken from its queue. Owned by the queue, which reuses it once completed.
struct receive_slot {
  std::uint64_t id = 0;
  std::span<const sge> elements;
  std::uint64_t size = 0;  ///< sum of the elements
  void* queue = nullptr;   // the queue it came from, for that queue's use
};

}  // namespace iwarp::rdmap
