// iwarp-sample-capture FILE.pcap [--max N]: shows the iWARP traffic in a capture, one line per FPDU.
//
// It teaches how the receiving layers are used without a network. They take octets in any cut and never read by
// themselves, so a capture file does as well as a socket: mpa::startup_reader takes the MPA Request and Reply,
// mpa::fpdu_rx finds and verifies FPDUs, and the header parsers of ddp and rdmap say what each one is.
#include "ddp/header.hpp"
#include "mpa/fpdu_rx.hpp"
#include "mpa/startup_frame.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "samples/support/tcp_capture.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace iwarp;
using capture::direction;

struct totals {
  std::size_t fpdus = 0;
  std::size_t max_lines = 0;
};

/// What one side sent: a start-up frame, then FPDUs.
class half final : mpa::ulpdu_sink {
 public:
  half(mpa::rx_memory& memory, mpa::frame_kind first, std::string title, totals& counts)
      : startup_(first), fpdus_(memory, *this), title_(std::move(title)), counts_(counts) {}

  /// Reads the start-up frame in front of everything this side sent; nothing if that is not how it begins.
  std::optional<mpa::startup_header> start_up(const_bytes octets) {
    const auto taken = startup_.consume(octets);
    if (!taken || !startup_.complete()) return std::nullopt;
    skip_ = *taken;
    return startup_.frame().header;
  }
  void start(bool crc, bool markers) { fpdus_.start(crc, markers); }
  void take(const_bytes octets) {
    const std::size_t skipped = std::min(skip_, octets.size());  // the start-up frame again
    skip_ -= skipped;
    octets = octets.subspan(skipped);
    if (failed_ || octets.empty()) return;
    if (const auto taken = fpdus_.consume(octets); !taken) {
      fmt::print("{}  stops here: {}\n", title_, taken.error().message());
      failed_ = true;
    }
  }

 private:
  /// Called by fpdu_rx with each FPDU that is whole and, with CRC on, verified.
  result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override {
    IWARP_TRY(const std::string line, describe(unit));
    if (counts_.fpdus++ < counts_.max_lines) fmt::print("{}  {}\n", title_, line);
    return mpa::ulpdu_answer::taken;
  }

  static result<std::string> describe(const mpa::ulpdu& unit) {
    const const_bytes head = unit.head();
    if (!head.empty() && ddp::is_tagged(head[0])) {
      IWARP_TRY(const auto h, ddp::tagged_header::parse(head));
      return fmt::format("{:<18} STag 0x{:08x} TO 0x{:016x} {:5} octets{}", name(h.ulp_control), h.stag.value, h.offset,
                         unit.size() - ddp::tagged_header_size, h.last ? ", last" : "");
    }
    IWARP_TRY(const auto h, ddp::untagged_header::parse(head));
    const std::size_t length = unit.size() - ddp::untagged_header_size;
    if (rdmap::opcode_of(h.ulp_control) == rdmap::opcode::read_request && length >= rdmap::read_request_size) {
      const auto r = rdmap::read_request::parse(head.subspan<ddp::untagged_header_size, rdmap::read_request_size>());
      return fmt::format("{:<18} QN {} MSN {} {} octets from 0x{:08x}:0x{:016x} to 0x{:08x}:0x{:016x}",
                         name(h.ulp_control), h.queue, h.sequence.value, r.size, r.source.value, r.source_offset,
                         r.sink.value, r.sink_offset);
    }
    return fmt::format("{:<18} QN {} MSN {} MO {} {:5} octets{}", name(h.ulp_control), h.queue, h.sequence.value,
                       h.offset, length, h.last ? ", last" : "");
  }
  static std::string_view name(std::uint8_t control) { return rdmap::info(rdmap::opcode_of(control)).name; }

  mpa::startup_reader startup_;
  mpa::fpdu_rx fpdus_;
  std::string title_;
  totals& counts_;
  std::size_t skip_ = 0;
  bool failed_ = false;
};

/// False when the connection does not begin with an MPA Request and Reply.
bool show(const capture::tcp_stream& stream, direction request, mpa::rx_memory& memory, totals& counts) {
  const auto title = [&](direction d) {
    const bool forth = d == direction::to_server;
    return fmt::format("{} > {}", to_string(forth ? stream.client : stream.server),
                       to_string(forth ? stream.server : stream.client));
  };
  half initiator(memory, mpa::frame_kind::request, title(request), counts);
  half responder(memory, mpa::frame_kind::reply, title(opposite(request)), counts);
  const auto asked = initiator.start_up(stream.half(request).octets);
  const auto answered = responder.start_up(stream.half(opposite(request)).octets);
  if (!asked || !answered) return false;

  // The two frames agree on CRC for both directions; each asks for markers in what the other side sends.
  const bool crc = asked->crc || answered->crc;
  initiator.start(crc, answered->markers);
  responder.start(crc, asked->markers);
  for (const capture::piece& p : stream.pieces) {  // in the order of the capture
    (p.dir == request ? initiator : responder).take(stream.octets_of(p));
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Shows the iWARP traffic in a capture, one line per FPDU."};
  std::string file;
  totals counts{.max_lines = std::numeric_limits<std::size_t>::max()};
  app.add_option("FILE", file, "pcap or pcapng file of Ethernet frames")->required();
  app.add_option("--max", counts.max_lines, "show so many FPDUs; all are counted");
  CLI11_PARSE(app, argc, argv);

  const auto streams = capture::read_streams(file);
  if (!streams) {
    fmt::print(stderr, "iwarp-sample-capture: {}\n", streams.error());
    return 1;
  }
  mpa::rx_memory memory;
  std::size_t connections = 0;
  for (const capture::tcp_stream& s : *streams) {
    // The side that opened TCP need not be the one that sends the MPA Request.
    if (show(s, direction::to_server, memory, counts) || show(s, direction::to_client, memory, counts)) ++connections;
  }
  if (connections == 0) {
    fmt::print(stderr, "iwarp-sample-capture: {}: no iWARP connection in it\n", file);
    return 1;
  }
  fmt::print("{} FPDUs\n", counts.fpdus);
  return 0;
}
