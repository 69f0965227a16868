// Part of iwarp-perf.
// The two commands.
// Threading: one call per process.  Time: the steady clock.  I/O: the network, stdout.
#pragma once

#include "tcp_glue/endpoint.hpp"
#include "tools/common/connection_flags.hpp"
#include "tools/common/server.hpp"
#include "tools/perf/parameters.hpp"

namespace iwarp::tools::perf {

struct serve_command {
  serve_options options;
  bool poll = true;
  connection_flags flags;
};
int run(serve_command command);

struct connect_command {
  tcp_glue::host_port where;
  operation op = operation::write;
  std::uint64_t size = 65536;
  std::uint64_t depth = 64;
  std::uint64_t seconds = 5;
  bool latency = false;
  bool json = false;
  connection_flags flags;
};
int run(const connect_command& command);

}  // namespace iwarp::tools::perf
