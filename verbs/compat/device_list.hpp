// Internal to the drop-in and iwarp-run.
// The devices that are offered: one for each chosen local address.
// Threading: free functions.  Time: none.  I/O: asks the kernel for its addresses.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "verbs/compat/settings.hpp"

namespace iwarp::compat {

struct local_address {
  std::string device;     ///< name of the device: iwarp0, iwarp1, ...
  std::string text;       ///< the address as people write it
  std::string interface;  ///< that has it
  in6_addr gid{};         ///< the address, IPv4 as IPv4-mapped
  std::uint32_t mtu = 0;  ///< of the interface, octets
};

/// In the order of the interfaces; those named in the settings in the order of the settings. Loopback addresses are
/// devices of their own only where they are named or nothing else is up: else they are reached through the others, as
/// with adapters. `unknown` gets what of the settings no interface has.
[[nodiscard]] std::vector<local_address> find_addresses(const settings& s, std::vector<std::string>* unknown = nullptr);

/// IPv4 as IPv4-mapped; all zero for other families.
[[nodiscard]] in6_addr gid_of(const sockaddr* address) noexcept;

}  // namespace iwarp::compat
