// Part of iwarp-ping.
// The two commands.
// Threading: one call per process.  Time: the steady clock.  I/O: the network, stdout.
#pragma once

#include <cstdint>

#include "tcp_glue/endpoint.hpp"
#include "tools/common/connection_flags.hpp"
#include "tools/common/server.hpp"

namespace iwarp::tools::ping {

struct connect_command {
  tcp_glue::host_port where;
  std::uint64_t count = 0;  ///< pings; 0: until a signal
  std::uint64_t size = 64;
  std::uint64_t timeout = 10;  ///< seconds for one ping
  bool verbose = false;
  connection_flags flags;
};
int run(const connect_command& command);

struct serve_command {
  serve_options options;
  bool verbose = false;
  connection_flags flags;
};
int run(serve_command command);

}  // namespace iwarp::tools::ping
