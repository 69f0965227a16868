#include "tools/dump/stream_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/dump/stream_half.hpp"

namespace iwarp::dump {

stream_analysis::stream_analysis(std::uint64_t number, connection& tcp, memory_use& memory, bool forced,
                                 event_sink& out, summary_event& totals)
    : tcp_(tcp), out_(out), totals_(totals), forced_(forced) {
  info_.number = number;
  for (const side s : {side::client, side::server}) halves_[index_of(s)] = std::make_unique<half>(*this, s, memory);
  for (const side s : {side::client, side::server}) at(s).tracker().set_peer(at(other(s)).tracker());
}

stream_analysis::~stream_analysis() = default;

void stream_analysis::on_octets(side from, std::uint64_t offset, const_bytes octets, frame_ref frame) {
  if (hopeless_) return;
  if (!named_) {
    named_ = true;
    info_.client = to_string(tcp_.client());
    info_.server = to_string(tcp_.server());
    if (forced_) found(found_by::fpdu_chain, frame);
  }
  at(from).octets(offset, octets, frame);
}

void stream_analysis::on_hole(side from, std::uint64_t offset, std::uint64_t size, hole_kind kind, frame_ref frame) {
  if (!hopeless_) at(from).hole(offset, size, kind, frame);
}

void stream_analysis::on_overlap(side from, std::uint64_t offset, std::uint64_t size, frame_ref frame) {
  if (found_ && !rejected_) {
    problem(from, offset, frame, "TCP",
            fmt::format("up to {} octets came again with another content: the first ones count", size));
  }
}

void stream_analysis::on_end(side from, ending how, frame_ref frame) {
  if (hopeless_) return;
  half& h = at(from);
  h.end(how, frame);
  if (how != ending::capture_end) closed_ = true;
  if (++ended_ != 2 || !found_) return;
  for (const side s : {side::client, side::server}) {
    if (at(s).frame() && !at(s).reported && at(s).frame_offset() == 0) report_frame(at(s), std::nullopt);
    at(s).tracker().finish(closed_, frame);
  }
}

void stream_analysis::problem(side from, std::uint64_t offset, frame_ref frame, std::string_view rule,
                              std::string text) {
  ++totals_.problems;
  out_.on(problem_event{.at = place_of(from, offset, frame), .rule = rule, .text = std::move(text)});
}

void stream_analysis::message(const message_event& m) {
  ++totals_.messages;
  out_.on(m);
}

void stream_analysis::found(found_by how, frame_ref frame) {
  if (found_) return;
  found_ = true;
  ++totals_.streams;
  tcp_.remember();
  out_.on(stream_event{.stream = &info_, .frame = frame, .how = how});
}

void stream_analysis::check_hopeless() {
  if (forced_ || found_) return;
  // As long as either direction may still turn out to be iWARP, both are looked at.
  const bool none = std::ranges::all_of(halves_, [](const auto& h) { return h->hopeless(); });
  const bool one_left = std::ranges::any_of(halves_, [](const auto& h) { return h->current() == half::phase::left; });
  const bool framed = std::ranges::any_of(halves_, [](const auto& h) { return h->frame().has_value(); });
  if (none || (one_left && !framed)) {
    hopeless_ = true;
    for (auto& h : halves_) h->leave();
  }
}

void stream_analysis::report_frame(half& h, const std::optional<agreement>& agreed) {
  const startup_fields& f = *h.frame();
  h.reported = true;
  mpa_event e;
  e.at = place_of(h.from(), h.frame_offset(), h.frame_at());
  e.kind = f.kind;
  e.revision = f.revision;
  e.markers = f.markers();
  e.crc = f.crc();
  e.rejected = f.rejected();
  e.enhanced_bit = f.enhanced_bit();
  e.enhanced = f.enhanced;
  e.private_data = f.private_data;
  e.wire = f.wire;
  e.negotiated = agreed;
  out_.on(e);
  for (finding& p : check_frame(f)) problem(h.from(), h.frame_offset(), h.frame_at(), p.rule, std::move(p.text));
}

void stream_analysis::frame_complete(half& h) {
  half& peer = at(other(h.from()));
  const bool request = h.frame()->kind == mpa::frame_kind::request;
  if (request) {
    // At the very beginning of a connection it is what it looks like. Behind octets of another protocol, or in a
    // capture that begins later, the Reply decides.
    if (h.frame_offset() == 0 && tcp_.syn_seen(h.from())) {
      found(found_by::startup, h.frame_at());
      if (!h.reported) report_frame(h, std::nullopt);
    }
    if (peer.frame() && peer.frame()->kind == mpa::frame_kind::request) {
      problem(h.from(), h.frame_offset(), h.frame_at(), "MPA-69", "both sides sent a Request: both are initiators");
      h.leave();
      peer.leave();
      return;
    }
    if (peer.frame()) {
      found(found_by::startup, h.frame_at());
      if (!h.reported) report_frame(h, std::nullopt);
      problem(peer.from(), peer.frame_offset(), peer.frame_at(), "MPA-61", "a Reply before the Request");
      enter_full_operation(h, peer);
    }
    return;
  }
  const bool has_request = peer.frame() && peer.frame()->kind == mpa::frame_kind::request;
  if (peer.frame() && !has_request) {
    problem(h.from(), h.frame_offset(), h.frame_at(), "MPA-69", "both sides sent a Reply: both are responders");
    return;
  }
  if (!has_request && tcp_.syn_seen(peer.from()) && peer.current() == half::phase::looking) {
    // The Request may still come, out of turn.
    return;
  }
  found(found_by::startup, h.frame_at());
  enter_full_operation(peer, h);
}

void stream_analysis::enter_full_operation(half& initiator, half& responder) {
  initiator_ = initiator.from();
  const startup_fields& reply = *responder.frame();
  if (initiator.frame()) {
    if (!initiator.reported) report_frame(initiator, std::nullopt);
    if (!reply.rejected()) agreed_ = agree(*initiator.frame(), reply);
  }
  if (!responder.reported) {
    report_frame(responder, agreed_);
    if (initiator.frame()) {
      for (finding& p : check_pair(*initiator.frame(), reply)) {
        problem(responder.from(), responder.frame_offset(), responder.frame_at(), p.rule, std::move(p.text));
      }
    }
  }
  if (reply.rejected()) {
    rejected_ = true;
    initiator.leave();
    responder.leave();
    return;
  }
  if (initiator.early() != 0) {
    problem(initiator.from(), initiator.early_offset(), responder.frame_at(), "MPA-67",
            fmt::format("{} octets behind the Request before the Reply", initiator.early()));
  }
  framing from_initiator;
  framing from_responder;
  from_initiator.markers = reply.markers();
  if (reply.crc()) from_initiator.crc = from_responder.crc = true;
  if (agreed_) {
    from_initiator.crc = from_responder.crc = agreed_->crc;
    from_responder.markers = agreed_->markers_from_responder;
    if (agreed_->initiator_reads) {
      // A responder may raise its IRD for a Read as RTR, and says so only by answering (RFC 6581 s9.1).
      const bool read_rtr = agreed_->peer_to_peer && agreed_->rtr.read;
      initiator.tracker().limit_reads(std::max<std::uint16_t>(*agreed_->initiator_reads, read_rtr ? 1 : 0));
    }
    if (agreed_->responder_reads) {
      const auto room = initiator.frame()->enhanced->ird;
      if (room != mpa::depth_not_negotiated) {
        responder.tracker().limit_reads(std::max(*agreed_->responder_reads, room));
      }
    }
  }
  initiator.enter_full(from_initiator);
  responder.enter_full(from_responder);
}

void stream_analysis::check_turn(half& h, const fpdu_unit& unit, const fpdu_event& e) {
  if (!initiator_) return;
  half& peer = at(other(h.from()));
  if (h.from() != *initiator_) {
    // RFC 5044 s7.1.2 rule 4: not before one valid FPDU arrived.
    if (peer.fpdus() != 0 || !peer.frame() || !peer.reader().in_sync()) return;
    std::string text = "the responder's first FPDU comes before any of the initiator's";
    // What the rule is there for is that no FPDU may be read along with the Reply. Linux siw keeps no more of it than
    // that: its listener sends when it likes, which no peer minds once the Reply is through.
    const bool reply_through = tcp_.acknowledged(h.from()) >= h.full_from();
    if (reply_through && !(agreed_ && agreed_->peer_to_peer)) {
      out_.on(note_event{.at = place_of(h.from(), unit.offset, unit.frame),
                         .rule = "MPA-68",
                         .text = text + " (which has acknowledged the Reply)"});
    } else {
      problem(h.from(), unit.offset, unit.frame, "MPA-68", std::move(text));
    }
    return;
  }
  const bool rtr_due = agreed_ && agreed_->peer_to_peer;
  const bool empty = e.headers ? e.payload_size == (e.op == rdmap::opcode::read_request ? rdmap::read_request_size : 0)
                               : unit.ulpdu_size == 0;
  if (!rtr_due) {
    if (unit.ulpdu_size == 0) problem(h.from(), unit.offset, unit.frame, "MPA-06", "a ULPDU of no octets");
    return;
  }
  bool agreed_kind = false;
  if (!e.headers) {
    agreed_kind = agreed_->rtr.send;  // RFC 6581 s9.2 speaks of a zero-length FULPDU
  } else if (e.op == rdmap::opcode::write) {
    agreed_kind = agreed_->rtr.write;
  } else if (e.op == rdmap::opcode::read_request) {
    agreed_kind = agreed_->rtr.read;
    if (unit.ulpdu.size() >= 34) {
      agreed_kind = agreed_kind && load_be<std::uint32_t>(unit.ulpdu.subspan(30).first<4>()) == 0;
    }
  } else if (e.op == rdmap::opcode::send) {
    agreed_kind = agreed_->rtr.send;
  } else if (e.op == rdmap::opcode::terminate) {
    return;  // it could send none of them
  }
  if (!empty || !agreed_kind) {
    problem(h.from(), unit.offset, unit.frame, "MPA-104", "the initiator's first FPDU is no RTR of an agreed kind");
  }
}

}  // namespace iwarp::dump
