// Part of iwarp-dump.
// From a captured frame to the IP packet in it: Ethernet with any number of VLAN tags, Linux cooked captures, raw IP,
// the BSD loopback. libpcap knows these layers by name but does not parse them. Threading: pure functions.  Time: none.
// I/O: none.
#pragma once

#include <string>

#include "base/bytes.hpp"

namespace iwarp::dump {

/// True for the link layers that ip_packet_of() understands, by their DLT_* number.
[[nodiscard]] bool link_type_known(int link_type) noexcept;
/// "IEEE802_11", or the number.
[[nodiscard]] std::string link_type_name(int link_type);

/// The IP packet in a frame, from its version nibble on, with what link-layer padding follows it; empty when there is
/// none. Its first nibble says 4 or 6.
[[nodiscard]] const_bytes ip_packet_of(int link_type, const_bytes frame) noexcept;

}  // namespace iwarp::dump
