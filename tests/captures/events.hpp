// Internal to tests/captures.
// What the receiving layers see in a recorded TCP connection: start-up frames, then each FPDU with its DDP and RDMAP
// header fields. One event is one line of a NAME.events file; pcap_fixtures/README.md describes the text.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "ddp/header.hpp"
#include "mpa/startup_frame.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "samples/support/tcp_capture.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

namespace iwarp::captures {

using capture::direction;

struct startup_event {
  mpa::startup_frame frame;
};

struct fpdu_event {
  std::uint64_t at = 0;          // of its ULPDU_Length, from the start of full operation
  std::size_t ulpdu_length = 0;  // as in the field
  rdmap::opcode op{};
  std::variant<ddp::tagged_header, ddp::untagged_header> header;
  std::optional<rdmap::read_request> request;  // of a Read Request
  std::vector<std::byte> payload;              // behind the DDP header; empty for a Read Request
};

struct error_event {
  std::error_code error;
};

struct event {
  direction dir = direction::to_server;
  std::uint32_t frame_index = 0;  // the frame of the capture that made it whole
  std::variant<startup_event, fpdu_event, error_event> what;
};

struct stream_events {
  capture::endpoint client;
  capture::endpoint server;
  direction from_initiator = direction::to_server;  // the direction in which the MPA Request travelled
  bool crc = false;
  bool markers_to_server = false;
  bool markers_to_client = false;
  std::vector<event> events;
  struct ending {
    std::size_t octets = 0;  // of the TCP stream
    std::size_t fpdus = 0;
    bool mid_fpdu = false;
    capture::closing closed{};
  };
  ending to_server;
  ending to_client;
};

/// How many octets to offer next, of `left` > 0: 1..left.
using cutter = std::function<std::size_t(std::size_t left)>;

/// Runs a recorded connection through mpa::startup_reader, mpa::fpdu_rx and the header parsers. `cut` cuts the segments
/// of the capture further. A stream that is not iWARP gives one error event.
[[nodiscard]] stream_events decode(const capture::tcp_stream& stream, const cutter& cut = {});

/// The lines of one stream, the `number`th of its file. No line ends in a newline.
[[nodiscard]] std::vector<std::string> to_lines(const stream_events& stream, std::size_t number);
/// The lines of a whole file: the heading, then every stream.
[[nodiscard]] std::vector<std::string> to_lines(const std::vector<capture::tcp_stream>& streams,
                                                const cutter& cut = {});

}  // namespace iwarp::captures
