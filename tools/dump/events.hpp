// Part of iwarp-dump.
// What the analyser finds, one struct per line of --json, and the interface of whoever writes it down: text, JSON,
// extracted files, a page, a test. Views in an event are valid during the call alone.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.hpp"
#include "base/types.hpp"
#include "mpa/startup_frame.hpp"
#include "rdmap/atomic.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "rdmap/terminate.hpp"
#include "tools/dump/endpoint.hpp"

namespace iwarp::dump {

/// A frame of the capture: its number, the first is 1, and when it was taken, nanoseconds since 1970.
struct frame_ref {
  std::uint64_t number = 0;
  std::int64_t time = 0;
};

/// A TCP connection. Numbers count all connections of the capture from 0, in the order of their first frame.
struct stream_info {
  std::uint64_t number = 0;
  std::string client;
  std::string server;
  [[nodiscard]] const std::string& name(side s) const noexcept { return s == side::client ? client : server; }
};

/// Where something was seen.
struct place {
  const stream_info* stream = nullptr;
  side from = side::client;
  frame_ref frame;           // that brought its last octet
  std::uint64_t offset = 0;  // of its first octet in the TCP stream of its direction: 0 is the octet behind the SYN,
                             // or, without one in the capture, the first octet captured
};

/// How a connection was recognised as iWARP.
enum class found_by : std::uint8_t { startup, fpdu_chain };

struct stream_event {
  const stream_info* stream = nullptr;
  frame_ref frame;
  found_by how = found_by::startup;
};

/// What both start-up frames together say (RFC 5044 s7.1.1, RFC 6581 s9).
struct agreement {
  std::uint8_t revision = 1;
  bool crc = false;
  bool markers_from_initiator = false;
  bool markers_from_responder = false;
  std::optional<std::uint16_t> initiator_reads;  // outstanding at once; nothing: not negotiated
  std::optional<std::uint16_t> responder_reads;
  bool peer_to_peer = false;
  mpa::rtr_set rtr{};
};

/// A start-up frame.
struct mpa_event {
  place at;
  mpa::frame_kind kind = mpa::frame_kind::request;
  std::uint8_t revision = 0;
  bool markers = false;
  bool crc = false;
  bool rejected = false;
  bool enhanced_bit = false;
  std::optional<mpa::enhanced_data> enhanced;
  const_bytes private_data;             // of the ULP, behind the enhanced data
  const_bytes wire;                     // all of the frame
  std::optional<agreement> negotiated;  // of an accepting Reply whose Request was seen
};

enum class crc_state : std::uint8_t {
  ok,
  bad,
  off,  ///< not in use
  cut,  ///< in use or not: octets of the FPDU are missing from the capture
};

struct fpdu_event {
  place at;
  frame_ref first_frame;       // that brought its first octet
  std::size_t ulpdu_size = 0;  // ULPDU_Length
  bool headers = true;         // false: too short for a DDP header; what follows up to `message` is void
  rdmap::opcode op{};
  bool tagged = false;
  bool last = false;
  stag tag{};  // tagged
  std::uint64_t tagged_offset = 0;
  stag invalidate{};  // untagged
  std::uint32_t queue = 0;
  std::uint32_t sequence = 0;
  std::uint32_t offset = 0;
  std::size_t payload_size = 0;  // behind the DDP header
  std::uint64_t message = 0;     // number, within the stream, of the message it belongs to; the first is 1
  crc_state crc = crc_state::off;
  std::uint32_t crc_field = 0;
  const_bytes ulpdu;    // what was captured of it, markers taken out
  const_bytes payload;  // likewise, of what is behind the DDP header
  const_bytes wire;     // what was captured of the FPDU, markers and all
};

/// A Read or Atomic Response and the request it answers: the number of that message, nothing when it was not seen.
struct answer {
  std::optional<std::uint64_t> request;
};
struct atomic_answer {
  std::optional<std::uint64_t> request;
  rdmap::atomic_response response;
};
struct immediate_data {
  std::uint64_t value = 0;
};
struct terminate_detail {
  rdmap::terminate_message terminate;
};

/// A message, whole or as far as it was seen.
struct message_event {
  place at;  // offset: of its first FPDU
  frame_ref first_frame;
  std::uint64_t number = 0;  // within the stream, counted at the first FPDU of each
  rdmap::opcode op{};
  std::uint64_t length = 0;  // octets behind the DDP headers
  std::uint64_t segments = 0;
  stag tag{};
  std::uint64_t tagged_offset = 0;  // of its first segment
  stag invalidate{};
  std::uint32_t queue = 0;
  std::uint32_t sequence = 0;
  bool crc_bad = false;     // of one of its FPDUs
  bool cut = false;         // octets of it are missing from the capture
  bool unfinished = false;  // its last segment never came
  std::variant<std::monostate, rdmap::read_request, answer, rdmap::atomic_request, atomic_answer, immediate_data,
               terminate_detail>
      detail;
};

/// Something that a rule forbids. `rule`: an id of the conformance list (MPA-20, DDP-10, RDMAP-28, EXT-02), or TCP or
/// CAPTURE for what lies below iWARP.
struct problem_event {
  place at;
  std::string_view rule;
  std::string text;
};

/// Against a rule to the letter, but usual and harmless: shown, not counted.
struct note_event {
  place at;
  std::string_view rule;
  std::string text;
};

/// Octets of a stream that say nothing: missing from the capture, or passed over to the next FPDU. What there is to
/// tell a reader about it comes as a problem.
struct lost_event {
  place at;
  std::uint64_t octets = 0;
};

struct summary_event {
  std::uint64_t frames = 0;
  std::uint64_t tcp_streams = 0;
  std::uint64_t streams = 0;  // that are iWARP
  std::uint64_t fpdus = 0;
  std::uint64_t messages = 0;
  std::uint64_t problems = 0;
  std::uint64_t crc_bad = 0;
  std::uint64_t lost_octets = 0;  // of iWARP streams: missing from the capture, or passed over to the next FPDU
};

class event_sink {
 public:
  virtual void on(const stream_event&) {}
  virtual void on(const mpa_event&) {}
  virtual void on(const fpdu_event&) {}
  virtual void on(const message_event&) {}
  virtual void on(const problem_event&) {}
  virtual void on(const note_event&) {}
  virtual void on(const lost_event&) {}
  virtual void on(const summary_event&) {}

 protected:
  ~event_sink() = default;
};

/// The names used in lines: "Send", "ReadReq", "op0xC".
[[nodiscard]] std::string_view short_name(rdmap::opcode op) noexcept;
[[nodiscard]] std::string_view name_of(crc_state s) noexcept;

}  // namespace iwarp::dump
