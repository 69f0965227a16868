// Internal to samples and tests.
// Reads a pcap or pcapng file of Ethernet frames and rebuilds the octets of every TCP connection in it: IPv4 and IPv6,
// VLAN tags, segments out of order, retransmitted or overlapping. Where each segment ended is kept.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: read_streams() reads the file, nothing else
// does.
#pragma once

#include "base/bytes.hpp"

#include <tl/expected.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace iwarp::capture {

/// Address and port of one end of a TCP connection.
struct endpoint {
  bool ipv6 = false;
  std::array<std::uint8_t, 16> address{};  // IPv4: the first four octets
  std::uint16_t port = 0;
  auto operator<=>(const endpoint&) const = default;
};
/// "10.0.0.1:7174", "[fd99::11]:7174".
[[nodiscard]] std::string to_string(const endpoint& e);

/// The client is the side that sent the SYN; without one in the capture, the side that was seen first.
enum class direction : std::uint8_t { to_server, to_client };
[[nodiscard]] constexpr direction opposite(direction d) noexcept {
  return d == direction::to_server ? direction::to_client : direction::to_server;
}

enum class closing : std::uint8_t { open, fin, reset };

/// Everything one side sent, in sequence order and each octet once. Where segments overlap, what came first stays.
struct half_stream {
  std::vector<std::byte> octets;
  closing closed = closing::open;  ///< how it ended: FIN, RST, or with the capture
  std::uint64_t missing = 0;       ///< octets known to follow `octets` that the capture does not have, or not in order
};

/// Octets that one frame of the capture made available in order.
struct piece {
  direction dir = direction::to_server;
  std::size_t begin = 0;          ///< offset in half_stream::octets
  std::size_t size = 0;           ///< one TCP segment's, less what was there already
  std::uint32_t frame_index = 0;  ///< the frame that brought, or released, them; the first of the file is 1
};

struct tcp_stream {
  endpoint client;
  endpoint server;
  half_stream to_server;
  half_stream to_client;
  std::vector<piece> pieces;  ///< both directions, in the order of the capture

  [[nodiscard]] const half_stream& half(direction d) const noexcept {
    return d == direction::to_server ? to_server : to_client;
  }
  [[nodiscard]] half_stream& half(direction d) noexcept { return d == direction::to_server ? to_server : to_client; }
  [[nodiscard]] const_bytes octets_of(const piece& p) const noexcept {
    return const_bytes(half(p.dir).octets).subspan(p.begin, p.size);
  }
};

/// Rebuilds streams frame by frame. Frames that are not TCP over IP over Ethernet, are damaged, or are IP fragments,
/// are passed over. A sequence gap holds back what follows until it is filled.
class stream_rebuilder {
 public:
  /// `frame`: what was captured of an Ethernet frame, from the destination address on. `index`: its number in the file.
  void add(const_bytes frame, std::uint32_t index);
  /// The streams, in the order in which each began. Call once, at the end.
  [[nodiscard]] std::vector<tcp_stream> finish();

 private:
  struct half_state {
    bool begun = false;
    std::uint32_t next = 0;  // sequence number of the next octet in order
    bool fin_seen = false;
    std::uint32_t fin_at = 0;                                 // sequence number behind the last octet
    std::map<std::uint64_t, std::vector<std::byte>> waiting;  // by offset in half_stream::octets
  };
  struct connection {
    tcp_stream stream;
    std::array<half_state, 2> halves;
  };
  struct segment;

  void add_ipv4(const_bytes packet, std::uint32_t index);
  void add_ipv6(const_bytes packet, std::uint32_t index);
  void add_tcp(const endpoint& from, const endpoint& to, const_bytes captured, std::size_t length, std::uint32_t index);
  void add_segment(connection& c, direction d, const segment& s);
  void append(connection& c, direction d, const_bytes octets, std::uint32_t index);

  std::vector<connection> connections_;
  std::map<std::pair<endpoint, endpoint>, std::size_t> latest_;  // both orders of the pair: index of the newest
};

/// All TCP streams of a capture file, or one line that says why it cannot be read: no such file, not a capture, a link
/// layer other than Ethernet, a file cut short.
[[nodiscard]] tl::expected<std::vector<tcp_stream>, std::string> read_streams(const std::filesystem::path& file);

}  // namespace iwarp::capture
