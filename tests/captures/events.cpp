#include "tests/captures/events.hpp"

#include "mpa/crc32c.hpp"
#include "mpa/error.hpp"
#include "mpa/fpdu_rx.hpp"
#include "tests/support/hex.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace iwarp::captures {
namespace {

/// The Request may travel either way: the side that opened TCP need not be the MPA initiator (RFC 5044 s7.1).
direction direction_of_request(const capture::tcp_stream& stream) {
  mpa::startup_reader reader(mpa::frame_kind::request);
  const auto read = reader.consume(stream.to_client.octets);
  return read && reader.begun() ? direction::to_client : direction::to_server;
}

class decoder {
 public:
  decoder(const capture::tcp_stream& stream, direction from_initiator, stream_events& out)
      : out_(out),
        halves_{half(*this, direction::to_server, kind_of(direction::to_server, from_initiator)),
                half(*this, direction::to_client, kind_of(direction::to_client, from_initiator))} {
    out_.client = stream.client;
    out_.server = stream.server;
    out_.from_initiator = from_initiator;
  }

  void feed(direction d, const_bytes octets, std::uint32_t frame_index) {
    frame_index_ = frame_index;
    half& h = of(d);
    if (h.failed) return;
    if (!h.reader.complete()) {
      const auto taken = h.reader.consume(octets);
      if (!taken) return h.fail(taken.error());
      octets = octets.subspan(*taken);
      if (!h.reader.complete()) return;
      add(d, startup_event{h.reader.frame()});
      if (of(opposite(d)).reader.complete()) enter_full_operation();
    }
    if (octets.empty()) return;
    if (full_operation_) {
      h.feed(octets);
    } else {
      h.early.push_back({{octets.begin(), octets.end()}, frame_index});
    }
  }

  [[nodiscard]] stream_events::ending ending(direction d, const capture::tcp_stream& stream) {
    const half& h = of(d);
    return {.octets = stream.half(d).octets.size(),
            .fpdus = h.fpdus,
            .mid_fpdu = full_operation_ && h.rx.mid_fpdu(),
            .closed = stream.half(d).closed};
  }

 private:
  struct half final : mpa::ulpdu_sink {
    half(decoder& o, direction d, mpa::frame_kind kind) : owner(o), dir(d), reader(kind), rx(o.memory_, *this) {}

    void feed(const_bytes octets) {
      const auto taken = rx.consume(octets);
      if (!taken) fail(taken.error());
    }
    void fail(std::error_code error) {
      failed = true;
      owner.add(dir, error_event{error});
    }
    result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override {
      ++fpdus;
      IWARP_TRY(auto event, read(unit));
      owner.add(dir, std::move(event));
      return mpa::ulpdu_answer::taken;
    }
    static result<fpdu_event> read(const mpa::ulpdu& unit);

    decoder& owner;
    direction dir;
    mpa::startup_reader reader;
    mpa::fpdu_rx rx;
    std::vector<std::pair<std::vector<std::byte>, std::uint32_t>> early;  // came before both start-up frames were seen
    std::size_t fpdus = 0;
    bool failed = false;
  };

  static mpa::frame_kind kind_of(direction d, direction from_initiator) {
    return d == from_initiator ? mpa::frame_kind::request : mpa::frame_kind::reply;
  }
  half& of(direction d) { return halves_[static_cast<std::size_t>(d)]; }
  void add(direction d, decltype(event::what) what) {
    out_.events.push_back({.dir = d, .frame_index = frame_index_, .what = std::move(what)});
  }

  void enter_full_operation() {
    full_operation_ = true;
    const mpa::startup_header to_server = of(direction::to_server).reader.frame().header;
    const mpa::startup_header to_client = of(direction::to_client).reader.frame().header;
    out_.crc = to_server.crc || to_client.crc;  // either side's C obliges both (RFC 5044 s7.1.1)
    // M asks for markers in what the other side sends.
    out_.markers_to_server = to_client.markers;
    out_.markers_to_client = to_server.markers;
    of(direction::to_server).rx.start(out_.crc, out_.markers_to_server);
    of(direction::to_client).rx.start(out_.crc, out_.markers_to_client);
    for (half& h : halves_) {
      for (const auto& [octets, frame_index] : h.early) {
        frame_index_ = frame_index;
        if (!h.failed) h.feed(octets);
      }
    }
  }

  stream_events& out_;
  mpa::rx_memory memory_;
  std::array<half, 2> halves_;
  bool full_operation_ = false;
  std::uint32_t frame_index_ = 0;
};

result<fpdu_event> decoder::half::read(const mpa::ulpdu& unit) {
  fpdu_event e;
  e.at = unit.stream_offset();
  e.ulpdu_length = unit.size();
  const const_bytes head = unit.head();
  std::uint8_t control = 0;
  std::size_t header_size = 0;
  if (!head.empty() && ddp::is_tagged(head[0])) {
    IWARP_TRY(const auto header, ddp::tagged_header::parse(head));
    control = header.ulp_control;
    header_size = ddp::tagged_header_size;
    e.header = header;
  } else {
    IWARP_TRY(const auto header, ddp::untagged_header::parse(head));
    control = header.ulp_control;
    header_size = ddp::untagged_header_size;
    e.header = header;
  }
  e.op = rdmap::opcode_of(control);
  if (e.op == rdmap::opcode::read_request && head.size() >= header_size + rdmap::read_request_size) {
    e.request = rdmap::read_request::parse(head.subspan(header_size).first<rdmap::read_request_size>());
    header_size += rdmap::read_request_size;
  }
  e.payload.resize(unit.size() - header_size);
  unit.copy_to(header_size, e.payload);
  return e;
}

std::string name_of(rdmap::opcode op) {
  switch (op) {
    case rdmap::opcode::write:
      return "write";
    case rdmap::opcode::read_request:
      return "read_request";
    case rdmap::opcode::read_response:
      return "read_response";
    case rdmap::opcode::send:
      return "send";
    case rdmap::opcode::send_invalidate:
      return "send_invalidate";
    case rdmap::opcode::send_solicited:
      return "send_solicited";
    case rdmap::opcode::send_solicited_invalidate:
      return "send_solicited_invalidate";
    case rdmap::opcode::terminate:
      return "terminate";
    case rdmap::opcode::immediate:
      return "immediate";
    case rdmap::opcode::immediate_solicited:
      return "immediate_solicited";
    case rdmap::opcode::atomic_request:
      return "atomic_request";
    case rdmap::opcode::atomic_response:
      return "atomic_response";
  }
  return fmt::format("opcode_{:x}", static_cast<unsigned>(op));
}

constexpr char arrow(direction d) { return d == direction::to_server ? '>' : '<'; }

std::string text_of(const startup_event& e) {
  const mpa::startup_header& h = e.frame.header;
  std::string text = fmt::format("{} rev={} markers={:d} crc={:d} rejected={:d} enhanced={:d} pd_length={}",
                                 h.kind == mpa::frame_kind::request ? "mpa_request" : "mpa_reply", h.revision,
                                 h.markers, h.crc, h.rejected, h.enhanced, h.private_data_length);
  if (e.frame.enhanced) {
    const mpa::enhanced_data& d = *e.frame.enhanced;
    text += fmt::format(" a={:d} b={:d} c={:d} d={:d} ird={} ord={}", d.peer_to_peer, d.rtr.send, d.rtr.write,
                        d.rtr.read, d.ird, d.ord);
  }
  return text + " data=" + test_support::to_hex(e.frame.private_data());
}

std::string text_of(const fpdu_event& e) {
  std::string text = fmt::format("{} at={} ulpdu={}", name_of(e.op), e.at, e.ulpdu_length);
  if (const auto* t = std::get_if<ddp::tagged_header>(&e.header)) {
    text += fmt::format(" last={:d} stag=0x{:08x} to=0x{:016x}", t->last, t->stag.value, t->offset);
  } else {
    const auto& u = std::get<ddp::untagged_header>(e.header);
    text += fmt::format(" last={:d} inv=0x{:08x} qn={} msn={} mo={}", u.last, u.invalidate.value, u.queue,
                        u.sequence.value, u.offset);
  }
  if (e.request) {
    text += fmt::format(" sink=0x{:08x}:0x{:016x} size={} source=0x{:08x}:0x{:016x}", e.request->sink.value,
                        e.request->sink_offset, e.request->size, e.request->source.value, e.request->source_offset);
  }
  return text + fmt::format(" payload={} sum=0x{:08x}", e.payload.size(), mpa::crc32c(e.payload));
}

std::string text_of(const error_event& e) { return "error " + e.error.message(); }

std::string text_of(capture::closing c) {
  switch (c) {
    case capture::closing::open:
      return "open";
    case capture::closing::fin:
      return "fin";
    case capture::closing::reset:
      return "reset";
  }
  return {};
}

}  // namespace

stream_events decode(const capture::tcp_stream& stream, const cutter& cut) {
  stream_events out;
  const auto d = std::make_unique<decoder>(stream, direction_of_request(stream), out);
  for (const capture::piece& p : stream.pieces) {
    const_bytes left = stream.octets_of(p);
    while (!left.empty()) {
      const std::size_t n = cut ? cut(left.size()) : left.size();
      d->feed(p.dir, left.first(n), p.frame_index);
      left = left.subspan(n);
    }
  }
  out.to_server = d->ending(direction::to_server, stream);
  out.to_client = d->ending(direction::to_client, stream);
  return out;
}

std::vector<std::string> to_lines(const stream_events& stream, std::size_t number) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{} stream client={} server={} request={} crc={} markers_to_server={} markers_to_client={}", number,
      to_string(stream.client), to_string(stream.server), arrow(stream.from_initiator), stream.crc ? "on" : "off",
      stream.markers_to_server ? "on" : "off", stream.markers_to_client ? "on" : "off"));
  for (const event& e : stream.events) {
    lines.push_back(fmt::format("{} {} frame={} {}", number, arrow(e.dir), e.frame_index,
                                std::visit([](const auto& what) { return text_of(what); }, e.what)));
  }
  for (const direction d : {direction::to_server, direction::to_client}) {
    const stream_events::ending& e = d == direction::to_server ? stream.to_server : stream.to_client;
    lines.push_back(fmt::format("{} {} end octets={} fpdus={} unfinished={:d} closed={}", number, arrow(d), e.octets,
                                e.fpdus, e.mid_fpdu, text_of(e.closed)));
  }
  return lines;
}

std::vector<std::string> to_lines(const std::vector<capture::tcp_stream>& streams, const cutter& cut) {
  std::vector<std::string> lines{"# iWARP events, format 1: see README.md"};
  std::size_t number = 0;
  for (const capture::tcp_stream& s : streams) {
    const auto more = to_lines(decode(s, cut), ++number);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace iwarp::captures
