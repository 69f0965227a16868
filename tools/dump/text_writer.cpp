#include "tools/dump/text_writer.hpp"

#include <algorithm>

namespace iwarp::dump {
namespace {

using buffer = fmt::memory_buffer;

template <class... Arguments>
void add(buffer& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

void add_rtr(buffer& out, const mpa::rtr_set& rtr) {
  std::string_view comma;
  const auto one = [&](bool there, std::string_view name) {
    if (!there) return;
    add(out, "{}{}", comma, name);
    comma = ",";
  };
  one(rtr.send, "Send");
  one(rtr.write, "Write");
  one(rtr.read, "Read");
  if (!rtr.any()) add(out, "none");
}

void add_depth(buffer& out, std::uint16_t depth) {
  if (depth == mpa::depth_not_negotiated) {
    add(out, "unsaid");
  } else {
    add(out, "{}", depth);
  }
}

void add_request(buffer& out, const std::optional<std::uint64_t>& request) {
  if (request) {
    add(out, "  answers #{}", *request);
  } else {
    add(out, "  answers no request seen");
  }
}

struct detail_writer {
  buffer& out;
  void operator()(std::monostate) const {}
  void operator()(const rdmap::read_request& r) const {
    add(out, "  {} octets of 0x{:08x}:0x{:x} to 0x{:08x}:0x{:x}", r.size, r.source.value, r.source_offset, r.sink.value,
        r.sink_offset);
  }
  void operator()(const answer& a) const { add_request(out, a.request); }
  void operator()(const rdmap::atomic_request& a) const {
    add(out, "  id 0x{:x} on 0x{:08x}:0x{:x}", a.identifier, a.remote.value, a.remote_offset);
    if (a.op == rdmap::atomic_opcode::fetch_add) {
      add(out, ": FetchAdd 0x{:x}, mask 0x{:x}", a.data, a.mask);
    } else if (a.op == rdmap::atomic_opcode::compare_swap) {
      add(out, ": CmpSwap 0x{:x}/0x{:x} to 0x{:x}/0x{:x}", a.compare, a.compare_mask, a.data, a.mask);
    } else {
      add(out, ": AOpCode {}", static_cast<unsigned>(a.op));
    }
  }
  void operator()(const atomic_answer& a) const {
    add_request(out, a.request);
    add(out, "  id 0x{:x}, the value was 0x{:x}", a.response.identifier, a.response.value);
  }
  void operator()(const immediate_data& i) const { add(out, "  data 0x{:016x}", i.value); }
  void operator()(const terminate_detail& t) const {
    const rdmap::terminate_message& m = t.terminate;
    add(out, "  {}", rdmap::describe(m.code));
    if (m.swapped_reading) add(out, ", or as siw writes it: {}", rdmap::describe(*m.swapped_reading));
    if (m.segment_length_valid) add(out, ", segment of {} octets", m.segment_length);
    if (m.ddp_header_size != 0) {
      add(out, ", header ");
      append_hex(out, m.ddp_header.data(), m.ddp_header_size);
    }
    if (m.request) {
      add(out, ", Read Request: ");
      (*this)(*m.request);
    }
  }
};

}  // namespace

void append_detail(buffer& out, const message_event& e) { std::visit(detail_writer{out}, e.detail); }

void append_fields(buffer& out, const mpa_event& e, std::size_t private_octets) {
  add(out, "rev {}, crc {}, markers {}{}", e.revision, e.crc ? "on" : "off", e.markers ? "on" : "off",
      e.rejected ? ", REJECTED" : "");
  if (e.enhanced) {
    add(out, ", ird ");
    add_depth(out, e.enhanced->ird);
    add(out, ", ord ");
    add_depth(out, e.enhanced->ord);
    if (e.enhanced->peer_to_peer) {
      add(out, ", peer-to-peer, rtr ");
      add_rtr(out, e.enhanced->rtr);
    }
  }
  if (!e.private_data.empty()) {
    add(out, ", {} octets of private data: ", e.private_data.size());
    append_hex(out, e.private_data.data(), std::min(private_octets, e.private_data.size()));
    if (e.private_data.size() > private_octets) add(out, "...");
  }
  if (e.negotiated) {
    const agreement& a = *e.negotiated;
    add(out, "; agreed: rev {}, crc {}, markers {}", a.revision, a.crc ? "on" : "off",
        a.markers_from_initiator && a.markers_from_responder ? "both ways"
        : a.markers_from_initiator                           ? "from the initiator"
        : a.markers_from_responder                           ? "from the responder"
                                                             : "off");
    if (a.initiator_reads) add(out, ", initiator reads {}", *a.initiator_reads);
    if (a.responder_reads) add(out, ", responder reads {}", *a.responder_reads);
  }
}

void text_writer::begin(const place& at, std::string_view what) {
  if (!origin_) origin_ = at.frame.time;
  // Captures merged from several hosts may step back in time.
  const std::int64_t since = at.frame.time - *origin_;
  const std::int64_t size = since < 0 ? -since : since;
  add(out_.text(), "{:>8} {:>1}{:>5}.{:06} {:>4} {} {:<11}", at.frame.number, since < 0 ? "-" : "",
      size / 1'000'000'000, size / 1000 % 1'000'000, at.stream->number, at.from == side::client ? "->" : "<-", what);
}

void text_writer::hex(const_bytes octets) {
  static constexpr std::size_t row = 32;
  for (std::size_t i = 0; i < octets.size(); i += row) {
    add(out_.text(), "{:>24}{:04x} ", "", i);
    for (std::size_t j = i; j < std::min(i + row, octets.size()); j += 4) {
      out_.text().push_back(' ');
      append_hex(out_.text(), octets.data() + j, std::min<std::size_t>(4, octets.size() - j));
    }
    out_.end_line();
  }
}

void text_writer::on(const stream_event& e) {
  add(out_.text(), "stream {}: {} -> {}{}", e.stream->number, e.stream->client, e.stream->server,
      e.how == found_by::startup ? "" : ", begins before the capture");
  out_.end_line();
}

void text_writer::on(const mpa_event& e) {
  static constexpr std::size_t most = 32;
  buffer& out = out_.text();
  begin(e.at, e.kind == mpa::frame_kind::request ? "MPA Request" : "MPA Reply");
  add(out, " {:>10}  ", "");
  append_fields(out, e, most);
  out_.end_line();
  if (options_.hex) hex(e.wire);
}

void text_writer::on(const fpdu_event& e) {
  if (!options_.fpdus && !options_.hex) return;
  buffer& out = out_.text();
  begin(e.at, "  fpdu");
  add(out, " {:>10}  at {}: ", e.payload_size, e.at.offset);
  if (!e.headers) {
    add(out, "ULPDU of {} octets", e.ulpdu_size);
  } else {
    add(out, "#{} {}{}", e.message, short_name(e.op), e.last ? " last" : "");
    if (e.tagged) {
      add(out, ", stag 0x{:08x}, to 0x{:x}", e.tag.value, e.tagged_offset);
    } else {
      add(out, ", qn {}, msn {}, mo {}", e.queue, e.sequence, e.offset);
      if (rdmap::invalidates(e.op)) add(out, ", invalidate 0x{:08x}", e.invalidate.value);
    }
  }
  if (e.crc == crc_state::cut) {
    add(out, ", not captured whole");
  } else {
    add(out, ", crc {} (0x{:08x})", name_of(e.crc), e.crc_field);
  }
  out_.end_line();
  if (options_.hex) hex(e.wire);
}

void text_writer::on(const message_event& e) {
  buffer& out = out_.text();
  begin(e.at, short_name(e.op));
  add(out, " {:>10}  #{}", e.length, e.number);
  if (rdmap::info(e.op).tagged) {
    add(out, " 0x{:08x}:0x{:x}", e.tag.value, e.tagged_offset);
  } else {
    add(out, " msn {}", e.sequence);
    if (rdmap::invalidates(e.op)) add(out, ", invalidates 0x{:08x}", e.invalidate.value);
  }
  append_detail(out, e);
  if (e.segments > 1) add(out, "  ({} segments, frames {}-{})", e.segments, e.first_frame.number, e.at.frame.number);
  if (e.crc_bad) add(out, "  CRC BAD");
  if (e.cut) add(out, "  not captured whole");
  if (e.unfinished) add(out, "  UNFINISHED");
  out_.end_line();
}

void text_writer::on(const problem_event& e) {
  begin(e.at, "! PROBLEM");
  add(out_.text(), " {:>10}  at {}: {}", e.rule, e.at.offset, e.text);
  out_.end_line();
}

void text_writer::on(const note_event& e) {
  begin(e.at, "  note");
  add(out_.text(), " {:>10}  at {}: {}", e.rule, e.at.offset, e.text);
  out_.end_line();
}

void text_writer::on(const summary_event& e) {
  add(out_.text(),
      "{} streams, {} FPDUs, {} messages, {} problems, {} bad CRCs, {} octets lost; {} frames, {} TCP connections",
      e.streams, e.fpdus, e.messages, e.problems, e.crc_bad, e.lost_octets, e.frames, e.tcp_streams);
  out_.end_line();
}

}  // namespace iwarp::dump
