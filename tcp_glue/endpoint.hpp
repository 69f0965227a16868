// Internal to tcp_glue and verbs.
// TCP addresses as people write them and as the kernel takes them.
// Threading: free functions.  Time: resolve() waits for the name service.  I/O: resolve() alone.
#pragma once

#include "base/result.hpp"

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::tcp_glue {

using endpoint = boost::asio::ip::tcp::endpoint;

/// What a user wrote for an address. Not looked up yet.
struct host_port {
  std::string host;         ///< name or address without brackets; empty for "every local address" (":PORT")
  std::uint16_t port = 0;   ///< the given port, else the default one
  bool port_given = false;  ///< the text held a port

  bool operator==(const host_port&) const = default;
};

/// Takes NAME, NAME:PORT, IPV4, IPV4:PORT, IPV6, [IPV6], [IPV6]:PORT and :PORT; an IPv6 address may carry a scope
/// ("fe80::1%eth0"). Names are not looked up. Port 0 asks the kernel to choose (for listeners).
/// Errors: bad_address, bad_port.
result<host_port> parse_host_port(std::string_view text, std::uint16_t default_port);

/// "192.0.2.1:7471", "[2001:db8::1]:7471", "[fe80::1%eth0]:7471": parse_host_port() reads it back.
std::string to_string(const endpoint& where);

/// Every address of a host, in the order to try them (RFC 6724, by the C library). Blocks: on a thread that may wait.
/// `passive`: for a listener; an empty host is then the wildcard addresses, [::] first because a listener there takes
/// IPv4 as well. Without it an empty host is this machine's loopback.
/// Errors: host_not_found, resolver_busy, resolver_failed; or errno of the C library. Never an empty list.
result<std::vector<endpoint>> resolve(const host_port& where, bool passive);

}  // namespace iwarp::tcp_glue
