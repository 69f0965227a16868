// Part of the programs.
// `serve`: listens, and gives every client a thread of its own, so that no client can hold up another.
// Threading: one call per process; the client function runs on many threads.  Time: none.  I/O: the context's.
#pragma once

#include <cstdint>
#include <functional>

#include "tcp_glue/endpoint.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::tools {

struct serve_options {
  tcp_glue::host_port where;
  verbs::listen_options listen;
  std::uint64_t connections = 0;     ///< end after so many; 0: at a signal
  std::uint64_t max_clients = 1000;  ///< at once; more are rejected
  unsigned domains = 1;              ///< progress domains
};

/// Serves one client: accepts `request` and returns when the client is gone. May throw; a failure is printed with the
/// client's address, but for peer_closed and interrupted.
using serve_client = std::function<void(const verbs::context& where, const verbs::connection_event& request)>;

/// Prints "listening on ADDR:PORT" and serves until a signal or until options.connections were served. Returns the exit
/// code. Throws failure when it cannot listen.
int serve(const serve_options& options, const serve_client& client);

}  // namespace iwarp::tools
