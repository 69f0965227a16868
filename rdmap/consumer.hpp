// Internal to verbs, rdmap.
// What a stream must know of its consumer (verbs implements it): the memory that may be reached, receives that are
// posted, and whom to tell of completions.
// Threading: called inside the stream's turn, never from another thread.  Time: none.  I/O: none.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/types.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/work_request.hpp"

namespace iwarp::rdmap {

enum class access_error : std::uint8_t {
  none,
  invalid_stag,      ///< unknown, wrong key, or invalidated
  out_of_bounds,     ///< not wholly inside the region
  not_associated,    ///< of another protection domain
  no_right,          ///< the region, or the QP, lacks the right
  wraps,             ///< offset + size wraps 2^64
  cannot_invalidate  ///< STag 0, or one that may not be invalidated remotely
};

enum class remote_right : std::uint8_t { read, write };

/// Memory found usable, kept so until `pin` is released; or why it was not.
struct access_result {
  mutable_bytes bytes = {};
  void* pin = nullptr;
  access_error error = access_error::none;
  [[nodiscard]] explicit operator bool() const noexcept { return error == access_error::none; }
};

struct receive_result {
  wr_status status = wr_status::success;
  opcode op = opcode::send;
  std::uint32_t size = 0;  ///< octets of the message
  stag invalidated = {};   ///< iff invalidates(op)
};

class consumer {
 public:
  /// Access by the peer, `size` > 0. Checks in this order: STag and key, protection domain, right, bounds and wrap.
  virtual access_result access_remote(stag key, std::uint64_t offset, std::size_t size,
                                      remote_right right) noexcept = 0;
  /// Access by an element of the consumer's own request, `size` > 0; `write`: local write is needed.
  virtual access_result access_local(stag key, void* address, std::size_t size, bool write) noexcept = 0;
  /// Access by an element of a receive, to be written. It may be checked against another protection domain than the
  /// consumer's own: a shared receive queue has its own (VERBS s6.3).
  virtual access_result access_receive(stag key, void* address, std::size_t size) noexcept {
    return access_local(key, address, size, true);
  }
  virtual void release(void* pin) noexcept = 0;
  /// Invalidates by the peer's word (RFC 5040 s5.3): checks association and that remote access is allowed at all.
  virtual access_error invalidate_remote(stag key) noexcept = 0;
  /// Invalidates by the consumer's own request. An already invalid STag succeeds.
  virtual access_error invalidate_local(stag key) noexcept = 0;

  /// Takes the next posted receive; null when there is none.
  virtual receive_slot* take_receive() noexcept = 0;

  /// Called exactly once for each submitted request, in order. `request` may be reused when this returns.
  virtual void send_completed(const work_request& request, wr_status status) noexcept = 0;
  /// Called exactly once for each receive taken, in the order they were taken.
  virtual void receive_completed(receive_slot& slot, const receive_result& result) noexcept = 0;

 protected:
  ~consumer() = default;
};

}  // namespace iwarp::rdmap
