// Internal to tcp_glue and verbs.
// Opens a kernel TCP connection, bounded in time and cancellable.
// Threading: async_connect() and cancel() from any thread; the handler runs on the executor.  Time: Asio's steady
// clock. I/O: asynchronous.
#pragma once

#include "base/types.hpp"
#include "tcp_glue/transport.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <system_error>

namespace iwarp::tcp_glue {

struct connect_request {
  endpoint remote;
  std::optional<endpoint> local = {};  ///< source address; its port 0 leaves the choice of a port to the kernel
  duration timeout = duration::max();  ///< the longest a TCP handshake may take; max: as long as the kernel tries
};

/// Called exactly once, never inside async_connect(); not at all when the executor's io_context is destroyed before.
/// The transport is there if and only if the error is not set. Errors: connection_refused (also when the kernel joined
/// the socket to itself, which it does when the source port happens to be the wanted one and nobody listens), timed_out
/// (by our timer or the kernel's), operation_canceled, and errno of socket(2), bind(2), connect(2).
using connect_handler = std::function<void(std::error_code, std::unique_ptr<transport>)>;

/// A connection being opened. A value; letting go of it does not cancel.
class connect_attempt {
 public:
  connect_attempt() = default;

  /// The handler gets operation_canceled, unless its outcome was already decided.
  void cancel() noexcept;

 private:
  class operation;
  friend connect_attempt async_connect(boost::asio::any_io_executor executor, const connect_request& request,
                                       connect_handler handler);
  explicit connect_attempt(std::shared_ptr<operation> made) noexcept : operation_(std::move(made)) {}

  std::shared_ptr<operation> operation_;
};

/// Begins to connect. The transport waits on `executor` as well.
connect_attempt async_connect(boost::asio::any_io_executor executor, const connect_request& request,
                              connect_handler handler);

}  // namespace iwarp::tcp_glue
