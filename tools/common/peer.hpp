// Part of the programs.
// An address as the user wrote it, with what the name service made of it.
// Threading: free functions.  Time: resolve_peer() waits for the name service.  I/O: resolve_peer() alone.
#pragma once

#include <string>
#include <vector>

#include "tcp_glue/endpoint.hpp"

namespace iwarp::tools {

/// Where to connect to. `text` is what lines to the user call it: "HOST:PORT".
struct peer {
  std::string text;
  std::vector<tcp_glue::endpoint> addresses;
};

/// "HOST:PORT", with brackets around an IPv6 address.
std::string to_text(const tcp_glue::host_port& where);

/// Looks the host up. Throws failure "cannot connect to ...: reason".
peer resolve_peer(const tcp_glue::host_port& where);

}  // namespace iwarp::tools
