#include "tools/common/peer.hpp"

#include <fmt/format.h>

#include "tools/common/failure.hpp"

namespace iwarp::tools {

std::string to_text(const tcp_glue::host_port& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", where.host, where.port) : fmt::format("{}:{}", where.host, where.port);
}

peer resolve_peer(const tcp_glue::host_port& where) {
  peer found{.text = to_text(where), .addresses = {}};
  found.addresses = require(tcp_glue::resolve(where, false), "cannot connect to " + found.text);
  return found;
}

}  // namespace iwarp::tools
