// Internal to rdmap, ddp.
// What DDP must know of the layer above it (rdmap implements it): which headers are acceptable, where payload goes, and
// whom to tell. The order of the calls is the validation order of RFC 5041 s7.1 as this project fixes it: header, ULP
// fields, then buffer.
// Threading: called by ddp::receiver inside its caller's turn.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "ddp/header.hpp"

#include <cstdint>
#include <span>

namespace iwarp::ddp {

/// Memory that a tagged segment may be written to, kept usable until released.
struct tagged_target {
  mutable_bytes bytes;
  void* pin = nullptr;  ///< the resolver's own; handed back to release_tagged()
};

/// The buffer of one untagged message: a scatter list, filled in order. The spans outlive the message.
struct untagged_target {
  std::span<const mutable_bytes> pieces;
  std::uint64_t size = 0;  ///< sum of the pieces
};

enum class buffer_answer {
  ready,
  none,  ///< no buffer is there: the receiver answers untagged_no_buffer
  hold,  ///< no buffer is there yet, and by policy the stream waits for one
};

inline constexpr std::uint32_t untagged_queues = 4;  // QN 0..3 (RFC 5040 s4.2, RFC 7306 s4)

class upper_layer {
 public:
  /// Checks version, opcode and their fit to T and to `payload` octets, before anything is resolved. Called again for
  /// a segment that was held, so it changes nothing. Errors: iwarp.rdmap.
  virtual result<> check_tagged(const tagged_header& header, std::size_t payload) noexcept = 0;
  /// Likewise for an untagged segment. An unknown QN for the opcode is this layer's error as well.
  virtual result<> check_untagged(const untagged_header& header, std::size_t payload) noexcept = 0;

  /// Resolves header.stag/offset for `size` > 0 octets. Errors: the tagged ones of iwarp.ddp.
  virtual result<tagged_target> resolve_tagged(const tagged_header& header, std::size_t size) noexcept = 0;
  virtual void release_tagged(const tagged_target& target) noexcept = 0;
  /// One tagged segment is placed. Errors end the stream.
  virtual result<> tagged_placed(const tagged_header& header, std::size_t size) noexcept = 0;

  /// The buffer for the next message on `header.queue`, asked once per message, at its first segment; asked again for
  /// the same segment after `hold`. Errors: any that ends the stream.
  virtual result<buffer_answer> untagged_buffer(const untagged_header& header, untagged_target& out) noexcept = 0;
  /// A whole untagged message of `size` octets is placed. `header` is its last segment's.
  virtual result<> untagged_placed(const untagged_header& header, std::uint32_t size) noexcept = 0;

 protected:
  ~upper_layer() = default;
};

}  // namespace iwarp::ddp
