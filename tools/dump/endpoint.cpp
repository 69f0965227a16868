#include "tools/dump/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

namespace iwarp::dump {

std::string to_string(const endpoint& e) {
  char host[INET6_ADDRSTRLEN] = {};
  inet_ntop(e.ipv6 ? AF_INET6 : AF_INET, e.address.data(), host, sizeof host);
  return e.ipv6 ? fmt::format("[{}]:{}", host, e.port) : fmt::format("{}:{}", host, e.port);
}

}  // namespace iwarp::dump
