// Internal to tcp_glue.
// The few kernel socket calls that Asio 1.74 does not make the way this stack needs them.
// Threading: free functions.  Time: none.  I/O: non-blocking system calls.
#pragma once

#include "base/result.hpp"
#include "tcp_glue/endpoint.hpp"

#include <boost/system/error_code.hpp>

namespace iwarp::tcp_glue {

/// Boost's copy of an error with std's category, so that it compares equal to what errno gave elsewhere.
std::error_code to_std(const boost::system::error_code& ec);

/// errno as an error code.
std::error_code last_errno() noexcept;

/// A fresh TCP socket, close-on-exec and non-blocking from its first moment: another thread may fork and exec between
/// two calls. The caller closes it. Errors: errno of socket(2).
result<int> open_socket(const boost::asio::ip::tcp& protocol) noexcept;

/// Takes one connection off a listening socket; the descriptor is close-on-exec and non-blocking. The caller closes it.
/// Interrupted calls are repeated. Errors: errno of accept4(2), EAGAIN when none waits.
result<int> accept_socket(int listener) noexcept;

}  // namespace iwarp::tcp_glue
