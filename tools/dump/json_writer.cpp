#include "tools/dump/json_writer.hpp"

#include <string_view>

namespace iwarp::dump {
namespace {

using buffer = fmt::memory_buffer;

template <class... Arguments>
void add(buffer& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

/// Texts are ours, but for what they quote.
void add_string(buffer& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      add(out, "\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void add_hex(buffer& out, const_bytes octets) {
  out.push_back('"');
  append_hex(out, octets.data(), octets.size());
  out.push_back('"');
}

void begin(buffer& out, std::string_view type, const place& at) {
  add(out, "{{\"type\":\"{}\",\"stream\":{},\"frame\":{},\"time\":{}.{:09},\"from\":\"{}\"", type, at.stream->number,
      at.frame.number, at.frame.time / 1'000'000'000, at.frame.time % 1'000'000'000, at.stream->name(at.from));
}

void add_rtr(buffer& out, const mpa::rtr_set& rtr) {
  std::string_view comma;
  const auto one = [&](bool there, std::string_view name) {
    if (!there) return;
    add(out, "{}\"{}\"", comma, name);
    comma = ",";
  };
  out.push_back('[');
  one(rtr.send, "Send");
  one(rtr.write, "Write");
  one(rtr.read, "Read");
  out.push_back(']');
}

void add_depth(buffer& out, std::string_view key, const std::optional<std::uint16_t>& depth) {
  if (depth) {
    add(out, ",\"{}\":{}", key, *depth);
  } else {
    add(out, ",\"{}\":null", key);
  }
}

void add_code(buffer& out, const rdmap::term_code& c) {
  add(out, "\"layer\":{},\"etype\":{},\"code\":{},\"text\":", c.layer, c.type, c.code);
  add_string(out, rdmap::describe(c));
}

void add_request(buffer& out, const std::optional<std::uint64_t>& request) {
  if (request) {
    add(out, ",\"request\":{}", *request);
  } else {
    add(out, ",\"request\":null");
  }
}

struct detail_writer {
  buffer& out;
  void operator()(std::monostate) const {}
  void operator()(const rdmap::read_request& r) const {
    add(out, ",\"size\":{},\"sink_stag\":{},\"sink_to\":{},\"src_stag\":{},\"src_to\":{}", r.size, r.sink.value,
        r.sink_offset, r.source.value, r.source_offset);
  }
  void operator()(const answer& a) const { add_request(out, a.request); }
  void operator()(const rdmap::atomic_request& a) const {
    add(out,
        ",\"atomic\":\"{}\",\"id\":{},\"src_stag\":{},\"src_to\":{},\"data\":{},\"mask\":{},\"compare\":{},"
        "\"compare_mask\":{}",
        a.op == rdmap::atomic_opcode::fetch_add      ? "FetchAdd"
        : a.op == rdmap::atomic_opcode::compare_swap ? "CmpSwap"
                                                     : "unassigned",
        a.identifier, a.remote.value, a.remote_offset, a.data, a.mask, a.compare, a.compare_mask);
  }
  void operator()(const atomic_answer& a) const {
    add_request(out, a.request);
    add(out, ",\"id\":{},\"value\":{}", a.response.identifier, a.response.value);
  }
  void operator()(const immediate_data& i) const { add(out, ",\"data\":\"{:016x}\"", i.value); }
  void operator()(const terminate_detail& t) const {
    const rdmap::terminate_message& m = t.terminate;
    out.push_back(',');
    add_code(out, m.code);
    if (m.swapped_reading) {
      add(out, ",\"swapped\":{{");
      add_code(out, *m.swapped_reading);
      out.push_back('}');
    }
    if (m.segment_length_valid) add(out, ",\"segment_length\":{}", m.segment_length);
    if (m.ddp_header_size != 0) {
      add(out, ",\"ddp_header\":");
      add_hex(out, const_bytes(m.ddp_header).first(m.ddp_header_size));
    }
    if (m.request) {
      add(out, ",\"rdma_header\":{{\"size\":{},\"sink_stag\":{},\"sink_to\":{},\"src_stag\":{},\"src_to\":{}}}",
          m.request->size, m.request->sink.value, m.request->sink_offset, m.request->source.value,
          m.request->source_offset);
    }
  }
};

}  // namespace

void json_writer::on(const mpa_event& e) {
  buffer& out = out_.text();
  begin(out, "mpa", e.at);
  add(out, ",\"role\":\"{}\",\"rev\":{},\"m\":{},\"c\":{},\"r\":{},\"s\":{}",
      e.kind == mpa::frame_kind::request ? "request" : "reply", e.revision, e.markers, e.crc, e.rejected,
      e.enhanced_bit);
  if (e.enhanced) {
    add(out, ",\"ird\":{},\"ord\":{},\"p2p\":{},\"rtr\":", e.enhanced->ird, e.enhanced->ord, e.enhanced->peer_to_peer);
    add_rtr(out, e.enhanced->rtr);
  } else {
    add(out, ",\"ird\":null,\"ord\":null,\"p2p\":false,\"rtr\":[]");
  }
  add(out, ",\"private\":");
  add_hex(out, e.private_data);
  if (e.negotiated) {
    const agreement& a = *e.negotiated;
    add(out, ",\"negotiated\":{{\"rev\":{},\"crc\":{},\"markers_from_initiator\":{},\"markers_from_responder\":{}",
        a.revision, a.crc, a.markers_from_initiator, a.markers_from_responder);
    add_depth(out, "initiator_reads", a.initiator_reads);
    add_depth(out, "responder_reads", a.responder_reads);
    add(out, ",\"p2p\":{},\"rtr\":", a.peer_to_peer);
    add_rtr(out, a.rtr);
    out.push_back('}');
  }
  out.push_back('}');
  out_.end_line();
}

void json_writer::on(const fpdu_event& e) {
  buffer& out = out_.text();
  begin(out, "fpdu", e.at);
  add(out, ",\"offset\":{}", e.at.offset);
  if (!e.headers) {
    add(out, ",\"op\":\"{}\",\"ulpdu\":{},\"len\":0,\"crc\":\"{}\"}}", e.ulpdu_size == 0 ? "Empty" : "short",
        e.ulpdu_size, name_of(e.crc));
    out_.end_line();
    return;
  }
  add(out, ",\"op\":\"{}\",\"tagged\":{},\"last\":{}", short_name(e.op), e.tagged, e.last);
  if (e.tagged) {
    add(out, ",\"stag\":{},\"to\":{}", e.tag.value, e.tagged_offset);
  } else {
    add(out, ",\"qn\":{},\"msn\":{},\"mo\":{}", e.queue, e.sequence, e.offset);
    if (rdmap::invalidates(e.op)) add(out, ",\"inv_stag\":{}", e.invalidate.value);
  }
  add(out, ",\"len\":{},\"crc\":\"{}\",\"ulpdu\":{},\"message\":{}}}", e.payload_size, name_of(e.crc), e.ulpdu_size,
      e.message);
  out_.end_line();
}

void json_writer::on(const message_event& e) {
  buffer& out = out_.text();
  begin(out, "message", e.at);
  add(out, ",\"offset\":{},\"message\":{},\"first_frame\":{},\"op\":\"{}\",\"len\":{},\"segments\":{}", e.at.offset,
      e.number, e.first_frame.number, short_name(e.op), e.length, e.segments);
  if (rdmap::info(e.op).tagged) {
    add(out, ",\"stag\":{},\"to\":{}", e.tag.value, e.tagged_offset);
  } else {
    add(out, ",\"qn\":{},\"msn\":{}", e.queue, e.sequence);
    if (rdmap::invalidates(e.op)) add(out, ",\"inv_stag\":{}", e.invalidate.value);
  }
  std::visit(detail_writer{out}, e.detail);
  if (e.crc_bad) add(out, ",\"crc_bad\":true");
  if (e.cut) add(out, ",\"cut\":true");
  if (e.unfinished) add(out, ",\"unfinished\":true");
  out.push_back('}');
  out_.end_line();
}

void json_writer::on(const problem_event& e) {
  buffer& out = out_.text();
  add(out, "{{\"type\":\"problem\",\"rule\":\"{}\",\"stream\":{},\"frame\":{},\"offset\":{},\"from\":\"{}\",\"text\":",
      e.rule, e.at.stream->number, e.at.frame.number, e.at.offset, e.at.stream->name(e.at.from));
  add_string(out, e.text);
  out.push_back('}');
  out_.end_line();
}

void json_writer::on(const summary_event& e) {
  buffer& out = out_.text();
  add(out,
      "{{\"type\":\"summary\",\"streams\":{},\"fpdus\":{},\"messages\":{},\"problems\":{},\"crc_bad\":{},"
      "\"lost_octets\":{},\"tcp_streams\":{},\"frames\":{}}}",
      e.streams, e.fpdus, e.messages, e.problems, e.crc_bad, e.lost_octets, e.tcp_streams, e.frames);
  out_.end_line();
}

}  // namespace iwarp::dump
