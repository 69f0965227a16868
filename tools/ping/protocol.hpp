// Part of iwarp-ping.
// What rping (rdma-core, librdmacm/examples) says to its peer, so that either end may be rping. Each ping:
//   client Sends an advert of its source      -> server RDMA Reads it, then Sends 16 octets: go ahead
//   client Sends an advert of its sink        -> server RDMA Writes the data there, then Sends 16 octets: done
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::tools::ping {

inline constexpr std::uint16_t default_port = 7174;
inline constexpr std::uint64_t max_size = std::uint64_t{16} << 20;  ///< of the data, what our server takes
inline constexpr std::uint64_t max_rping_size = 65535;              ///< what rping takes
inline constexpr std::uint32_t message_size = 16;

/// A buffer of the client. Octets: 0..7 address | 8..11 STag | 12..15 size, all big-endian. The server's messages have
/// the same size and no meaning beyond having come.
struct advert {
  verbs::remote_buffer buffer;
  std::uint32_t size = 0;

  void emit(std::span<std::byte, message_size> out) const noexcept;
  static advert parse(std::span<const std::byte, message_size> in) noexcept;
};

/// The data of ping number `number`, as rping fills it: "rdma-ping-N: ", then characters 'A'..'z' going round,
/// beginning one later with every ping; the last octet is NUL. 1 octet or more.
void fill(mutable_bytes data, std::uint64_t number);

/// The text up to the NUL, fit for a terminal.
std::string text_of(const_bytes data);

}  // namespace iwarp::tools::ping
