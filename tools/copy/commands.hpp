// Part of iwarp-copy.
// The three commands.
// Threading: one call per process.  Time: the steady clock.  I/O: the network, files, stdout, stderr.
#pragma once

#include <string>

#include "tcp_glue/endpoint.hpp"
#include "tools/common/connection_flags.hpp"
#include "tools/common/server.hpp"
#include "tools/copy/protocol.hpp"

namespace iwarp::tools::copy {

struct serve_command {
  std::string folder;
  bool read_only = false;
  serve_options options;
  connection_flags flags;
};
int run(serve_command command);

struct copy_command {
  operation op = operation::get;
  std::string file;  ///< the local one; get: empty for the name's last component
  tcp_glue::host_port where;
  std::string name;  ///< the server's; put: empty for the file's last component
  connection_flags flags;
};
int run(const copy_command& command);

}  // namespace iwarp::tools::copy
