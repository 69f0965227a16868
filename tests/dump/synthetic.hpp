// Internal to tests/dump.
// Captures made up octet by octet: iWARP streams, TCP connections around them, frames around those.
// Threading: not thread-safe; one caller at a time.  Time: made up.  I/O: write_pcap() alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "mpa/fpdu_tx.hpp"
#include "mpa/startup_frame.hpp"
#include "rdmap/atomic.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "tools/dump/endpoint.hpp"

namespace iwarp::dump_test {

using dump::side;
using octets = std::vector<std::byte>;

octets operator+(octets a, const octets& b);
/// Hexadecimal digits, blanks between them ignored.
octets from_hex(std::string_view text);
/// 0, 1, 2, ... modulo 251: no two places near each other alike.
octets counted(std::size_t size, std::size_t first = 0);

// ULPDUs ---------------------------------------------------------------------------------------------------------
octets tagged(rdmap::opcode op, std::uint32_t stag, std::uint64_t to, const octets& payload, bool last = true);
octets untagged(rdmap::opcode op, std::uint32_t queue, std::uint32_t msn, const octets& payload, std::uint32_t mo = 0,
                bool last = true, std::uint32_t invalidate = 0);
octets write(std::uint32_t stag, std::uint64_t to, const octets& payload, bool last = true);
octets send(std::uint32_t msn, const octets& payload, std::uint32_t mo = 0, bool last = true);
octets read_request(std::uint32_t msn, const rdmap::read_request& r);
octets read_response(std::uint32_t stag, std::uint64_t to, const octets& payload, bool last = true);
octets atomic_request(std::uint32_t msn, const rdmap::atomic_request& r);
octets atomic_response(std::uint32_t msn, const rdmap::atomic_response& r);
/// `content`: from the control word on.
octets terminate(const octets& content, std::uint32_t msn = 1);

/// One direction in full operation: ULPDUs in, stream octets out.
class fpdu_stream {
 public:
  explicit fpdu_stream(bool crc = true, bool markers = false, std::uint64_t position = 0) {
    tx_.start(crc, markers, position);
  }
  /// One FPDU; an empty ULPDU only with CRC on and without markers.
  octets operator()(const octets& ulpdu);

 private:
  mpa::fpdu_tx tx_;
};

// Start-up -------------------------------------------------------------------------------------------------------
struct startup {
  std::uint8_t revision = 2;
  bool markers = false;
  bool crc = true;
  bool rejected = false;
  std::optional<mpa::enhanced_data> enhanced = mpa::enhanced_data{.ird = 16, .ord = 16};
  octets private_data{};
};
octets request(const startup& s = {});
octets reply(const startup& s = {});

// Frames ---------------------------------------------------------------------------------------------------------
struct frame {
  octets data;
  std::size_t length = 0;  // on the wire
  std::int64_t time = 0;   // nanoseconds
};

enum class link : std::uint8_t { ethernet, vlan, qinq, cooked, cooked2, raw, loopback };
[[nodiscard]] int dlt(link l) noexcept;

struct tcp_options {
  link layer = link::ethernet;
  bool ipv6 = false;
  int ipv6_extensions = 0;
  std::uint16_t client_port = 40000;
  std::uint16_t server_port = 7174;
  std::uint32_t client_isn = 1000;
  std::uint32_t server_isn = 5'000'000;
  std::size_t segment = 1448;  // octets at most
  std::size_t snap = 0;        // octets of a frame kept; 0: all
  std::size_t fragment = 0;    // IP payload in a fragment, a multiple of 8; 0: no fragments
};

/// A TCP connection that says what it is told to, every segment with the acknowledgement it then has.
class tcp_talk {
 public:
  explicit tcp_talk(tcp_options options = {}) : options_(options), next_{options.client_isn, options.server_isn} {}

  void open();   // SYN, SYN ACK, ACK
  void close();  // FIN both ways
  void reset(side from);
  /// The octets as segments, in as many as are needed.
  void say(side from, const octets& data);
  /// As one segment, whatever its size.
  void segment(side from, const octets& data);
  void acknowledge(side from);
  /// The octets are sent and never captured.
  void lose(side from, std::size_t size) { next_[dump::index_of(from)] += static_cast<std::uint32_t>(size); }
  /// Any segment, at a sequence number relative to the next one.
  void raw(side from, std::int64_t relative, const octets& data, std::uint8_t flags = 0x18);

  std::vector<frame> frames;
  std::int64_t now = 1'700'000'000'000'000'000;

  [[nodiscard]] std::uint32_t next(side from) const noexcept { return next_[dump::index_of(from)]; }

 private:
  void emit(side from, std::uint32_t sequence, std::uint8_t flags, const octets& data);
  void wrap(side from, const octets& ip);

  tcp_options options_;
  std::uint32_t next_[2];
  std::uint16_t identification_ = 1;
};

void write_pcap(const std::string& path, const std::vector<frame>& frames, int link_type);
octets pcap_file(const std::vector<frame>& frames, int link_type);

/// A connection with start-up, as most tests begin.
struct talk {
  explicit talk(startup asked = {}, startup answered = {}, tcp_options options = {})
      : tcp(options),
        client(asked.crc || answered.crc, answered.markers),
        server(asked.crc || answered.crc, asked.markers) {
    tcp.open();
    tcp.say(side::client, request(asked));
    tcp.say(side::server, reply(answered));
  }
  void say(side from, const octets& ulpdu) { tcp.say(from, (from == side::client ? client : server)(ulpdu)); }
  tcp_talk tcp;
  fpdu_stream client;
  fpdu_stream server;
};

}  // namespace iwarp::dump_test
