// Public API.
// Listens for iWARP connections; each peer's Request becomes an event (rdma_listen).
// Threading: every function from any thread.  Time: startup_timeout of the options.  I/O: the context's.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/queue_pair.hpp"

namespace iwarp::verbs {

namespace detail {
class listener_state;
}

struct listen_options : connection_options {
  int backlog = 0;                   ///< TCP connections the kernel holds; 0: as many as it allows
  std::uint32_t max_pending = 1024;  ///< connections that have not been accepted or rejected; more wait in the backlog
  std::uint8_t mpa_revision = 2;     ///< highest to accept; 1 refuses enhanced Requests by closing (RFC 6581 s10)
  std::uint64_t user_data = 0;       ///< comes back in connect_request events
  bool v6_only = false;              ///< a listener on [::] takes IPv6 alone
  /// A TCP socket of the program's that is bound, and may be listening (socket activation): used instead of one of its
  /// own, taken over also when create() fails. `where` then only says its family. -1: none.
  int socket = -1;
};

/// Owns the port. The destructor frees it; Requests not answered are dropped, connections go on.
class listener {
 public:
  /// Port 0 lets the kernel choose. Errors: address_in_use; errno of bind(2), listen(2); invalid_read_depth, ...
  static result<listener> create(const event_channel& channel, const endpoint& where,
                                 const listen_options& options = {});
  listener() = default;
  listener(listener&&) noexcept = default;
  listener& operator=(listener&& other) noexcept;
  ~listener();

  [[nodiscard]] endpoint local() const;

 private:
  explicit listener(std::shared_ptr<detail::listener_state> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::listener_state> state_;
};

/// Says no to a Request; `private_data` goes to the peer: 0..508 octets (0..512 towards a revision 1 peer).
/// Errors: no_such_request, invalid_private_data.
result<> reject(const connection_request& request, const_bytes private_data = {});

}  // namespace iwarp::verbs
