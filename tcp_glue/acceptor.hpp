// Internal to tcp_glue and verbs.
// Listens on a kernel TCP port and hands out each connection as a transport.
// Threading: every function from any thread; the handler runs on the executor, one call at a time.  Time: Asio's steady
// clock.  I/O: asynchronous.
#pragma once

#include "tcp_glue/native_socket.hpp"
#include "tcp_glue/transport.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace iwarp::tcp_glue {

struct listen_options {
  int backlog = 0;       ///< connections the kernel holds for us; 0 or less: as many as it allows
  bool v6_only = false;  ///< a listener on [::] takes IPv6 alone; without it IPv4 as well
  /// A TCP socket that is bound, and may be listening, to use instead of one of its own; `where` only says its family.
  /// open() takes it over, also when it fails. -1: none.
  int socket = -1;
  /// The executor on which the next accepted transport waits, to spread connections over threads; called once for each,
  /// without any lock of the acceptor. Not set: the acceptor's own.
  std::function<boost::asio::any_io_executor()> executor_for_next = {};
  /// How one connection is taken; tests put failures here.
  result<int> (*accept_one)(int listener) noexcept = accept_socket;
};

class acceptor {
 public:
  using accept_handler = std::function<void(std::unique_ptr<transport>)>;
  struct counters {
    std::uint64_t accepted = 0;
    std::uint64_t aborted = 0;   ///< gone before they could be taken
    std::uint64_t deferred = 0;  ///< times accepting rested because this process or the system was short of something
  };

  /// Binds and listens; port 0 lets the kernel choose. The handler is not called before start(). Transports wait on
  /// `executor` as well, unless the options say otherwise. A port whose earlier connections are in TIME-WAIT can be
  /// bound at once. Errors: errno of socket(2), bind(2) (address_in_use, address_not_available, permission_denied),
  /// listen(2).
  static result<std::unique_ptr<acceptor>> open(boost::asio::any_io_executor executor, const endpoint& where,
                                                const listen_options& options = {});
  /// As close().
  ~acceptor();

  /// Hands each connection to `handler`, which must not throw. Once only. Running out of descriptors or memory does not
  /// end it: connections then wait in the backlog, and accepting is tried again every 100 ms.
  void start(accept_handler handler);
  /// Leaves further connections in the kernel's backlog, until resume().
  void pause() noexcept;
  void resume();
  /// Frees the port before it returns. A call of the handler that another thread is in goes on; none follows it.
  void close() noexcept;

  /// Where it listens, with the chosen port. Stays known after close().
  [[nodiscard]] endpoint local_endpoint() const noexcept;
  [[nodiscard]] counters totals() const noexcept;

  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;

 private:
  class listener;
  explicit acceptor(std::shared_ptr<listener> made) noexcept;

  std::shared_ptr<listener> listener_;
};

}  // namespace iwarp::tcp_glue
