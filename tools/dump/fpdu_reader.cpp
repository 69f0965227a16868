#include "tools/dump/fpdu_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mpa/crc32c.hpp"
#include "tools/dump/fpdu_hunt.hpp"

namespace iwarp::dump {
namespace {

// Octets of a next FPDU that show whether there is one: a marker, ULPDU_Length, the two control octets.
constexpr std::size_t confirming_octets = 8;
// ULPDU_Length, the longer DDP header, and a marker that may cut it.
constexpr std::size_t headers_reach = 24;

}  // namespace

void fpdu_reader::begin(std::uint64_t offset, framing how) {
  clear();
  how_ = how;
  how_.begins_at(offset);
  hunting_ = false;
  startup_unknown_ = false;
}

void fpdu_reader::begin_unknown(std::uint64_t offset, std::uint64_t missing) {
  clear();
  missing_ = missing;
  hunting_ = true;
  startup_unknown_ = true;
  lost_from_ = offset - missing;
  buffer_offset_ = offset;
}

void fpdu_reader::clear() {
  buffer_.clear();
  marks_.clear();
  wanted_ = 0;
  gone_ = 0;
  missing_ = 0;
  hunt_at_ = 0;
  other_only_ = false;
  count_memory();
}

void fpdu_reader::count_memory() {
  memory_.octets += buffer_.capacity() - counted_;
  counted_ = buffer_.capacity();
}

void fpdu_reader::keep(const_bytes in, frame_ref frame) {
  if (in.empty()) return;
  if (marks_.empty() || marks_.back().frame.number != frame.number) marks_.push_back({buffer_.size(), frame});
  buffer_.insert(buffer_.end(), in.begin(), in.end());
  if (buffer_.capacity() != counted_) count_memory();
}

void fpdu_reader::drop_front(std::size_t size) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size));
  buffer_offset_ += size;
  std::size_t keep_from = 0;
  while (keep_from + 1 < marks_.size() && marks_[keep_from + 1].begin <= size) ++keep_from;
  marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(keep_from));
  for (mark& m : marks_) m.begin -= std::min(m.begin, size);
}

void fpdu_reader::octets(std::uint64_t offset, const_bytes in, frame_ref frame) {
  if (hunting_) {
    if (buffer_.empty()) buffer_offset_ = offset;
    keep(in, frame);
    hunted_ += in.size();
    hunt_more(false);
    return;
  }
  read(offset, in, frame);
}

void fpdu_reader::read(std::uint64_t offset, const_bytes in, frame_ref frame) {
  while (!in.empty() && !hunting_) {
    if (gone_ != 0) {
      // Inside an FPDU with a hole: its end is known, what is in between is of no use.
      const auto e = measure(buffer_, how_.markers.value_or(false),
                             how_.markers.value_or(false) ? how_.position(buffer_offset_) : 0);
      const std::size_t left = e->total - buffer_.size() - static_cast<std::size_t>(gone_);
      const std::size_t taken = std::min(left, in.size());
      gone_ += taken;
      offset += taken;
      in = in.subspan(taken);
      if (taken == left) hand_up_cut(frame);
      continue;
    }
    if (buffer_.empty()) {
      const auto taken = take(offset, in, frame, false);
      if (!taken) return;
      offset += *taken;
      in = in.subspan(*taken);
      if (in.empty()) return;
      buffer_offset_ = offset;
      keep(in, frame);
      return;
    }
    // An unfinished FPDU is made whole first, with as little copied as that takes.
    const std::size_t more = wanted_ > buffer_.size() ? std::min(wanted_ - buffer_.size(), in.size()) : in.size();
    keep(in.first(more), frame);
    offset += more;
    in = in.subspan(more);
    if (buffer_.size() < wanted_) return;
    const auto taken = take(buffer_offset_, buffer_, frame, false);
    if (!taken) {
      octets(offset, in, frame);
      return;
    }
    if (*taken == buffer_.size()) {
      buffer_.clear();
      marks_.clear();
    } else if (*taken != 0) {
      drop_front(*taken);
    }
  }
}

std::optional<std::size_t> fpdu_reader::take(std::uint64_t offset, const_bytes in, frame_ref frame, bool at_end) {
  const bool markers = how_.markers.value_or(false);
  std::size_t done = 0;
  for (;;) {
    const const_bytes rest = in.subspan(done);
    const std::uint64_t here = offset + done;
    const std::uint64_t position = markers ? how_.position(here) : 0;
    const auto e = measure(rest, markers, position);
    if (!e) {
      wanted_ = confirming_octets;
      return done;
    }
    if (rest.size() < e->total) {
      wanted_ = e->total;
      // A length that cannot be one must not swallow what follows: look at the control octets before waiting for it.
      if (!how_.crc.value_or(false) && rest.size() >= e->lead + 4 && e->ulpdu_size >= 2 &&
          likeness_of(rest.subspan(e->lead + 2, 2), e->ulpdu_size) == likeness::none && e->ulpdu_size > 16384) {
        lose(here, rest, frame, at_end);
        return std::nullopt;
      }
      return done;
    }
    crc_state crc = crc_state::off;
    const std::uint32_t field = load_le<std::uint32_t>(rest.subspan(e->total - 4).first<4>());
    if (how_.crc.value_or(true)) {
      const bool good = mpa::crc32c(rest.first(e->total - 4)) == field;
      if (!how_.crc && good) how_.crc = true;
      crc = good ? crc_state::ok : how_.crc.value_or(false) ? crc_state::bad : crc_state::off;
    }
    if (suspicious(rest, *e, crc)) {
      // Believed when an FPDU, or nothing, follows where its length says.
      const const_bytes behind = rest.subspan(e->total);
      if (behind.size() < confirming_octets && !at_end) {
        wanted_ = e->total + confirming_octets;
        return done;
      }
      bool confirmed = behind.empty();
      const auto next = measure(behind, markers, markers ? how_.position(here + e->total) : 0);
      if (next && behind.size() >= next->lead + 4) {
        confirmed = likeness_of(behind.subspan(next->lead + 2, 2), next->ulpdu_size) != likeness::none;
      }
      if (!confirmed) {
        lose(here, rest, frame, at_end);
        return std::nullopt;
      }
    }
    hand_up(here, rest.first(e->total), *e, crc, frame);
    first_ = false;
    done += e->total;
    if (done == in.size()) {
      wanted_ = confirming_octets;
      return done;
    }
  }
}

bool fpdu_reader::suspicious(const_bytes in, const extent& e, crc_state crc) const noexcept {
  if (crc == crc_state::ok) return false;
  if (crc == crc_state::bad) return true;
  if (e.ulpdu_size == 0) return !first_;
  if (e.ulpdu_size < 2) return true;
  return likeness_of(in.subspan(e.lead + 2, 2), e.ulpdu_size) == likeness::none;
}

void fpdu_reader::check_markers(std::uint64_t offset, const_bytes in, const extent& e, frame_ref frame) {
  const auto check = [&](const_bytes marker, std::uint64_t at, std::size_t pointer) {
    const auto word = load_be<std::uint32_t>(marker.first<4>());
    const bool at_start = e.lead != 0 && first_ && pointer == 0;
    if ((word & 0xFFFF0000u) != 0) {
      out_.on_framing_problem(at, frame, at_start ? "MPA-21" : "MPA-15",
                              fmt::format("the reserved half of the marker is 0x{:04x}, not 0", word >> 16));
    }
    const std::uint32_t expected = static_cast<std::uint32_t>(pointer & 0xFFFF);
    if ((word & 0xFFFF) == expected) return;
    const bool low_bits = (word & 0xFFFC) == expected;
    out_.on_framing_problem(at, frame,
                            at_start       ? "MPA-21"
                            : pointer == 0 ? "MPA-24"
                            : low_bits     ? "MPA-16"
                                           : "MPA-20",
                            fmt::format("the marker due here points {} octets back, ULPDU_Length is {} octets back",
                                        word & 0xFFFF, expected));
  };
  if (e.lead != 0) check(in, offset, 0);
  const const_bytes fpdu = in.subspan(e.lead);
  for (std::size_t m = e.first_marker; m + 4 <= fpdu.size() && e.lead + m + 4 <= e.total; m += mpa::marker_interval) {
    check(fpdu.subspan(m), offset + e.lead + m, m);
  }
}

void fpdu_reader::hand_up(std::uint64_t offset, const_bytes in, const extent& e, crc_state crc, frame_ref frame) {
  const bool markers = how_.markers.value_or(false);
  fpdu_unit u;
  u.offset = offset + e.lead;
  u.ulpdu_size = e.ulpdu_size;
  u.wire = in;
  u.crc = crc;
  u.crc_field = load_le<std::uint32_t>(in.last<4>());
  if (crc == crc_state::bad) u.crc_computed = mpa::crc32c(in.first(in.size() - 4));
  u.frame = frame;
  u.first_frame = marks_.empty() ? frame : marks_.front().frame;
  const const_bytes fpdu = in.subspan(e.lead);
  if (markers) {
    const std::size_t padded = mpa::padded_size(e.ulpdu_size) - mpa::length_field_size;
    scratch_.resize(std::max(scratch_.size(), padded));
    extent with_pad = e;
    with_pad.ulpdu_size = padded;
    (void)copy_ulpdu(fpdu, with_pad, mutable_bytes(scratch_).first(padded));
    u.ulpdu = const_bytes(scratch_).first(e.ulpdu_size);
    u.pad_zero = std::all_of(scratch_.begin() + static_cast<std::ptrdiff_t>(e.ulpdu_size),
                             scratch_.begin() + static_cast<std::ptrdiff_t>(padded),
                             [](std::byte b) { return b == std::byte{0}; });
    check_markers(offset, in, e, frame);
  } else {
    u.ulpdu = fpdu.subspan(2, e.ulpdu_size);
    for (std::size_t i = 2 + e.ulpdu_size; i != e.body; ++i) u.pad_zero = u.pad_zero && fpdu[i] == std::byte{0};
  }
  hunted_ = 0;
  out_.on_fpdu(u);
}

void fpdu_reader::hand_up_cut(frame_ref frame) {
  const bool markers = how_.markers.value_or(false);
  const auto e = measure(buffer_, markers, markers ? how_.position(buffer_offset_) : 0);
  fpdu_unit u;
  u.offset = buffer_offset_ + e->lead;
  u.ulpdu_size = e->ulpdu_size;
  u.wire = buffer_;
  u.crc = crc_state::cut;
  u.frame = frame;
  u.first_frame = marks_.empty() ? frame : marks_.front().frame;
  const const_bytes fpdu = const_bytes(buffer_).subspan(e->lead);
  scratch_.resize(std::max(scratch_.size(), e->ulpdu_size));
  const std::size_t have = copy_ulpdu(fpdu, *e, mutable_bytes(scratch_).first(e->ulpdu_size));
  u.ulpdu = const_bytes(scratch_).first(have);
  first_ = false;
  const std::uint64_t missing = missing_;
  clear();
  out_.on_lost(u.offset, missing, missing, frame);
  out_.on_fpdu(u);
}

void fpdu_reader::hole(std::uint64_t offset, std::uint64_t size, frame_ref frame) {
  if (!hunting_ && !buffer_.empty() && gone_ == 0) {
    // What is there may hold FPDUs whose successors were waited for.
    const auto taken = take(buffer_offset_, buffer_, marks_.back().frame, true);
    if (!taken) {
      this->hole(offset, size, frame);
      return;
    }
    drop_front(*taken);
  }
  if (hunting_) {
    hunt_more(true);
    if (!hunting_) {
      hole(offset, size, frame);
      return;
    }
    const std::uint64_t missing = missing_ + size;
    clear();
    missing_ = missing;
    buffer_offset_ = offset + size;
    return;
  }
  const bool markers = how_.markers.value_or(false);
  const auto e = measure(buffer_, markers, markers ? how_.position(buffer_offset_) : 0);
  // With its length and its headers the FPDU can be told, and so can where the next begins.
  if (e && buffer_.size() >= e->lead + headers_reach &&
      likeness_of(const_bytes(buffer_).subspan(std::min(buffer_.size(), e->lead + 2)), e->ulpdu_size) !=
          likeness::none) {
    const std::uint64_t left = e->total - buffer_.size() - gone_;
    const std::uint64_t inside = std::min(left, size);
    gone_ += inside;
    missing_ += inside;
    offset += inside;
    size -= inside;
    if (inside == left) hand_up_cut(frame);
    if (size == 0) return;
  }
  lost_from_ = buffer_.empty() ? offset : buffer_offset_;
  clear();
  missing_ = size;
  hunting_ = true;
  buffer_offset_ = offset + size;
  out_.on_gap();
}

void fpdu_reader::lose(std::uint64_t offset, const_bytes in, frame_ref frame, bool at_end) {
  const bool markers = how_.markers.value_or(false);
  const auto e = measure(in, markers, markers ? how_.position(offset) : 0);
  const bool whole = e && in.size() >= e->total;
  const bool crc_bad = how_.crc.value_or(false) && whole;
  // Markers may be there, or not, in spite of what was negotiated or is known: then nothing is lost.
  const hunt_result here = hunt(in, offset, 0, how_, true, at_end);
  const bool only_markers = here.what == hunt_result::outcome::found && here.at == 0;
  if (!only_markers) {
    out_.on_unreadable(offset, frame, crc_bad,
                       crc_bad ? "an FPDU with a wrong CRC, and no FPDU follows where its length says"
                               : "no FPDU where the one before it ends");
  }
  hunting_ = true;
  other_only_ = true;
  lost_from_ = offset;
  missing_ = 0;
  if (!buffer_.empty()) {  // `in` is the rest of it
    drop_front(buffer_.size() - in.size());
  } else {
    buffer_.clear();
    marks_.clear();
    buffer_offset_ = offset;
    keep(in, frame);
  }
  buffer_offset_ = offset;
  hunt_at_ = 0;
  hunt_more(at_end);
}

void fpdu_reader::hunt_more(bool at_end) {
  const bool full = buffer_.size() >= hunt_limit;
  const hunt_result r = hunt(buffer_, buffer_offset_, hunt_at_, how_, other_only_ && hunt_at_ == 0, at_end || full);
  if (r.what != hunt_result::outcome::found) {
    const std::size_t seen = r.what == hunt_result::outcome::more ? r.at : buffer_.size();
    // The last octets may be the first of an FPDU.
    hunt_at_ = at_end                                 ? buffer_.size()
               : r.what == hunt_result::outcome::more ? seen
                                                      : seen - std::min<std::size_t>(seen, confirming_octets + 4);
    if (hunt_at_ != 0) other_only_ = other_only_ && hunt_at_ == 0;
    if (full || hunt_at_ > 64 * 1024) {
      drop_front(hunt_at_);
      hunt_at_ = 0;
      other_only_ = false;
    }
    return;
  }
  const framing before = how_;
  how_ = r.how;
  hunting_ = false;
  other_only_ = false;
  const std::uint64_t at = buffer_offset_ + r.at;
  std::vector<std::byte> octets = std::move(buffer_);
  const std::vector<mark> marks = std::move(marks_);
  buffer_.clear();
  marks_.clear();
  frame_ref frame;
  for (const mark& m : marks) {
    if (m.begin <= r.at) frame = m.frame;
  }
  const std::uint64_t lost = at - lost_from_;
  const std::uint64_t missing = std::min(missing_, lost);
  clear();
  hunted_ = 0;
  if (before.markers && how_.markers && *before.markers != *how_.markers) {
    out_.on_framing_problem(
        at, frame, *how_.markers ? "MPA-18" : "MPA-17",
        *how_.markers ? "markers, though the peer asked for none" : "no markers, though the peer asked for them");
  }
  if (startup_unknown_) {
    startup_unknown_ = false;
    out_.on_found(frame);
  }
  if (lost != 0) out_.on_lost(lost_from_, lost, missing, frame);
  // Again, now as what they are, each with its frame.
  for (std::size_t i = 0; i != marks.size(); ++i) {
    const std::size_t begin = std::max(marks[i].begin, r.at);
    const std::size_t stop = i + 1 == marks.size() ? octets.size() : marks[i + 1].begin;
    if (begin < stop)
      this->octets(at + (begin - r.at), const_bytes(octets).subspan(begin, stop - begin), marks[i].frame);
  }
}

void fpdu_reader::end(frame_ref frame) {
  if (!hunting_ && !buffer_.empty() && gone_ == 0) {
    const auto taken = take(buffer_offset_, buffer_, marks_.back().frame, true);
    if (!taken) {
      end(frame);
      return;
    }
    drop_front(*taken);
  }
  if (hunting_) {
    hunt_more(true);
    if (hunting_) {
      const std::uint64_t stop = buffer_offset_ + buffer_.size();
      if (!startup_unknown_ && stop > lost_from_) out_.on_lost(lost_from_, stop - lost_from_, missing_, frame);
      lost_from_ = stop;
      missing_ = 0;
    } else {
      end(frame);
      return;
    }
  }
}

}  // namespace iwarp::dump
