// Public API.
// Protection domains and memory regions (VERBS s7). Registering pins nothing: it is plain memory of the process, and
// every access is checked by STag, protection domain, rights and bounds.
// Threading: every function from any thread.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "verbs/access.hpp"
#include "verbs/context.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs {

namespace detail {
struct protection_domain_state;
struct region;
}  // namespace detail

/// Objects of one protection domain may be used together; a peer reaches only regions of its queue pair's domain.
/// Shared handle.
class protection_domain {
 public:
  static protection_domain create(const context& where);

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::protection_domain_state>& state() const noexcept { return state_; }

 private:
  explicit protection_domain(std::shared_ptr<detail::protection_domain_state> state) noexcept
      : state_(std::move(state)) {}
  std::shared_ptr<detail::protection_domain_state> state_;
};

/// Registered memory. Owns the registration, not the memory, which must stay until the region is gone. The destructor
/// deregisters: when it returns no peer and no queued request reaches the memory any more (RFC 5042 s6.2.2). Requests
/// that still name it complete with local_protection.
/// Give a peer no more rights, no more octets and for no longer than it needs; revoke write access before using what it
/// wrote; clear stale data before giving read access (RFC 5042 s6.2, s6.3).
class memory_region {
 public:
  /// `memory`: 0 or more octets. Errors: invalid_access, invalid_memory, too_many.
  static result<memory_region> create(const protection_domain& pd, mutable_bytes memory, access rights);
  /// Memory that is only read, by Sends, Writes and the peer's Reads. Errors: as above; invalid_access for write
  /// rights.
  static result<memory_region> create_read_only(const protection_domain& pd, const_bytes memory,
                                                access rights = access::local_read);

  memory_region() = default;  ///< no region
  memory_region(memory_region&& other) noexcept;
  memory_region& operator=(memory_region&& other) noexcept;
  ~memory_region();

  /// The STag. It is the local key of elements and the remote key to advertise; the index is random (RFC 5042 s6.1.1).
  [[nodiscard]] stag key() const noexcept { return key_; }
  [[nodiscard]] mutable_bytes memory() const noexcept { return memory_; }
  /// What to advertise to a peer so that it reaches octet `at` of this region.
  [[nodiscard]] remote_buffer remote(std::uint64_t at = 0) const noexcept;
  /// An element of `length` octets from octet `at` on. The range is checked when the request is carried out.
  [[nodiscard]] sge element(std::uint64_t at, std::uint32_t length) const noexcept {
    return {memory_.data() + at, length, key_};
  }
  /// All of it; the first 2^32-1 octets of a larger region.
  [[nodiscard]] sge element() const noexcept;
  /// False after a local or remote invalidate.
  [[nodiscard]] bool valid() const noexcept;
  /// Makes an invalidated region usable again under a new 8-bit key, so that the old STag stays refused (VERBS s7.6).
  /// Error: wrong_state while it is valid.
  result<stag> revalidate();

 private:
  static result<memory_region> make(const protection_domain& pd, mutable_bytes memory, access rights);
  std::shared_ptr<detail::protection_domain_state> pd_;
  detail::region* region_ = nullptr;
  mutable_bytes memory_;
  access rights_ = access::local_read;
  stag key_;
};

}  // namespace iwarp::verbs
