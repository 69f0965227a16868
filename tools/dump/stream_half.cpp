#include "tools/dump/stream_half.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace iwarp::dump {

void stream_analysis::half::octets(std::uint64_t offset, const_bytes in, frame_ref frame) {
  if (!begun_) {
    begun_ = true;
    mid_stream_ = !owner_.tcp_.syn_seen(from_) || offset != 0;
    if (mid_stream_) reader_.begin_unknown(offset);
    frame_offset_ = offset;
  }
  switch (phase_) {
    case phase::looking:
      look(offset, in, frame);
      return;
    case phase::frame:
      collect(offset, in, frame);
      return;
    case phase::waiting:
      if (early_ == 0) early_offset_ = offset;
      early_ += in.size();
      if (early_ <= early_limit) {
        pieces_.push_back({.offset = offset, .hole = 0, .octets = {in.begin(), in.end()}, .frame = frame, .kind = {}});
        return;
      }
      // The peer's frame is missing from the capture.
      enter_full({});
      octets(offset, in, frame);
      return;
    case phase::full:
      reader_.octets(offset, in, frame);
      return;
    case phase::left:
      return;
  }
}

void stream_analysis::half::look(std::uint64_t offset, const_bytes in, frame_ref frame) {
  // A key may lie across the end of what came before.
  const std::size_t before = buffer_.size();
  if (before == 0) buffer_offset_ = offset;
  const_bytes text = in;
  if (before != 0) {
    buffer_.insert(buffer_.end(), in.begin(), in.end());
    text = buffer_;
  }
  const std::uint64_t text_offset = before != 0 ? buffer_offset_ : offset;
  const key_place key = find_key(text);
  if (key.at != std::string_view::npos) {
    frame_offset_ = text_offset + key.at;
    const std::vector<std::byte> rest(text.begin() + static_cast<std::ptrdiff_t>(key.at), text.end());
    buffer_.clear();
    phase_ = phase::frame;
    collect(frame_offset_, rest, frame);
    return;
  }
  looked_ += in.size();
  const std::size_t tail = std::min(text.size(), startup_key_size - 1);
  const std::vector<std::byte> kept(text.end() - static_cast<std::ptrdiff_t>(tail), text.end());
  buffer_offset_ = text_offset + text.size() - tail;
  buffer_ = kept;
  if (mid_stream_) {
    reader_.octets(offset, in, frame);
  } else if (looked_ > look_limit) {
    if (owner_.forced_) {
      mid_stream_ = true;
      reader_.begin_unknown(offset + in.size());
    } else {
      leave();
    }
  }
  owner_.check_hopeless();
}

bool stream_analysis::half::hopeless() const noexcept {
  if (phase_ == phase::left) return true;
  // An FPDU is 64 KiB at most, so a long run without any is none.
  return phase_ == phase::looking && mid_stream_ && reader_.hunted() > 2 * fpdu_reader::hunt_limit;
}

void stream_analysis::half::collect(std::uint64_t offset, const_bytes in, frame_ref frame) {
  buffer_.insert(buffer_.end(), in.begin(), in.end());
  if (buffer_.size() < mpa::startup_fixed_size) return;
  const std::size_t size = startup_size(buffer_);
  if (buffer_.size() < size) return;
  fields_ = parse_startup(const_bytes(buffer_).first(size));
  frame_at_ = frame;
  const std::vector<std::byte> rest(buffer_.begin() + static_cast<std::ptrdiff_t>(size), buffer_.end());
  const std::uint64_t rest_offset = offset + in.size() - rest.size();
  buffer_.clear();
  phase_ = phase::waiting;
  full_from_ = rest_offset;
  if (fields_->kind == mpa::frame_kind::reply) {
    // Its rest is told once both directions know how they are framed.
    owner_.frame_complete(*this);
    if (!rest.empty()) octets(rest_offset, rest, frame);
  } else {
    if (!rest.empty()) octets(rest_offset, rest, frame);
    owner_.frame_complete(*this);
  }
}

void stream_analysis::half::hole(std::uint64_t offset, std::uint64_t size, hole_kind kind, frame_ref frame) {
  last_hole_snapped_ = kind == hole_kind::snapped;
  switch (phase_) {
    case phase::looking:
      buffer_.clear();
      if (!mid_stream_) {
        mid_stream_ = true;
        begun_ = true;
        reader_.begin_unknown(offset + size, size);
      } else {
        reader_.hole(offset, size, frame);
      }
      return;
    case phase::frame:
      // Half a frame says nothing that one could rely on.
      buffer_.clear();
      phase_ = phase::looking;
      mid_stream_ = true;
      reader_.begin_unknown(offset + size, size);
      return;
    case phase::waiting:
      pieces_.push_back({.offset = offset, .hole = size, .octets = {}, .frame = frame, .kind = kind});
      return;
    case phase::full:
      reader_.hole(offset, size, frame);
      return;
    case phase::left:
      return;
  }
}

void stream_analysis::half::enter_full(framing how) {
  if (phase_ == phase::left || phase_ == phase::full) return;
  const bool framed = phase_ == phase::waiting;
  phase_ = phase::full;
  if (framed) {
    reader_.begin(full_from_, how);
    std::vector<piece> pieces = std::move(pieces_);
    pieces_.clear();
    for (const piece& p : pieces) {
      if (p.hole != 0) {
        hole(p.offset, p.hole, p.kind, p.frame);
      } else {
        octets(p.offset, p.octets, p.frame);
      }
    }
    return;
  }
  if (how.crc) reader_.learn_crc(*how.crc);
  tracker_.begin_uncertain();
}

void stream_analysis::half::leave() {
  phase_ = phase::left;
  buffer_ = {};
  pieces_.clear();
}

void stream_analysis::half::end(ending how, frame_ref frame) {
  if (phase_ == phase::frame && fields_ == std::nullopt && owner_.found_) {
    owner_.problem(from_, frame_offset_, frame, "MPA-58", "TCP ended inside a start-up frame");
  }
  if (phase_ == phase::waiting && early_ != 0) enter_full({});
  if (phase_ == phase::full || (phase_ == phase::looking && mid_stream_)) {
    const bool inside = reader_.mid_fpdu();
    reader_.end(frame);
    if (phase_ == phase::full && reader_.mid_fpdu() && inside && how != ending::capture_end && !tracker_.terminated()) {
      owner_.problem(from_, 0, frame, "MPA-80", "TCP ended inside an FPDU");
    }
  }
}

void stream_analysis::half::on_found(frame_ref frame) {
  owner_.found(found_by::fpdu_chain, frame);
  if (phase_ == phase::looking) {
    phase_ = phase::full;
    tracker_.begin_uncertain();
  }
  half& peer = owner_.at(other(from_));
  if (peer.phase_ == phase::waiting && peer.fields_->kind == mpa::frame_kind::reply) {
    owner_.enter_full_operation(*this, peer);  // this side's Request is missing
  }
  if (reader_.how().crc) peer.reader_.learn_crc(*reader_.how().crc);
}

void stream_analysis::half::on_fpdu(const fpdu_unit& unit) {
  fpdu_event e;
  e.at = owner_.place_of(from_, unit.offset, unit.frame);
  e.first_frame = unit.first_frame;
  e.crc = unit.crc;
  e.crc_field = unit.crc_field;
  e.ulpdu = unit.ulpdu;
  e.wire = unit.wire;
  tracker_.describe(unit, e);
  ++fpdus_;
  ++owner_.totals_.fpdus;
  if (unit.crc == crc_state::bad) ++owner_.totals_.crc_bad;
  owner_.out_.on(e);
  if (fpdus_ == 1) {
    owner_.check_turn(*this, unit, e);
  } else if (unit.ulpdu_size == 0) {
    owner_.problem(from_, unit.offset, unit.frame, "MPA-06", "a ULPDU of no octets");
  }
  tracker_.handle(unit, e);
}

void stream_analysis::half::on_framing_problem(std::uint64_t offset, frame_ref frame, std::string_view rule,
                                               std::string text) {
  owner_.problem(from_, offset, frame, rule, std::move(text));
}

void stream_analysis::half::on_lost(std::uint64_t offset, std::uint64_t octets, std::uint64_t missing,
                                    frame_ref frame) {
  owner_.totals_.lost_octets += octets;
  owner_.out_.on(lost_event{.at = owner_.place_of(from_, offset, frame), .octets = octets});
  const bool said = last_hole_snapped_ && snap_said_;
  if (last_hole_snapped_) snap_said_ = true;
  if (!said && missing != 0 && last_hole_snapped_) {
    owner_.problem(from_, offset, frame, "CAPTURE",
                   "frames are cut short (snap length): payload is missing from here on, CRCs cannot be checked");
  } else if (!said) {
    owner_.problem(from_, offset, frame, missing != 0 ? "TCP" : "CAPTURE",
                   missing == octets ? fmt::format("{} octets are missing from the capture", octets)
                   : missing != 0
                       ? fmt::format("{} octets lost: {} are missing from the capture, then {} to the next FPDU",
                                     octets, missing, octets - missing)
                       : fmt::format("{} octets lost until the next FPDU", octets));
  }
  if (missing != octets || phase_ == phase::full) {
    // Behind a bridged hole the headers of every FPDU were seen; reader_ tells such a hole with the FPDU.
    if (!last_hole_snapped_) tracker_.handle_gap();
  }
}

void stream_analysis::half::on_unreadable(std::uint64_t offset, frame_ref frame, bool crc_bad, std::string text) {
  if (crc_bad) ++owner_.totals_.crc_bad;
  owner_.problem(from_, offset, frame, crc_bad ? "MPA-36" : "MPA-42", std::move(text));
}

}  // namespace iwarp::dump
