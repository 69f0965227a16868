#include "tools/dump/fpdu_hunt.hpp"

#include <algorithm>
#include <array>

#include "ddp/header.hpp"
#include "mpa/crc32c.hpp"
#include "rdmap/opcode.hpp"

namespace iwarp::dump {
namespace {

// Bits of evidence. A chain is believed from `enough` on: one chance in 2^44 for each place that is looked at.
constexpr unsigned enough = 44;
constexpr unsigned bits_tagged = 13;
constexpr unsigned bits_untagged = 41;
constexpr unsigned bits_crc = 32;
constexpr unsigned bits_zero_crc = 24;  // CRC off and the field 0, as Linux siw has it
constexpr unsigned bits_marker = 31;
constexpr unsigned bits_continued = 40;
constexpr unsigned bits_edge = 8;  // it ends where a TCP segment ends, as senders like to have it (RFC 5044 s5.1)
constexpr int longest_chain = 64;

enum class belief : std::uint8_t { no, open, yes };

struct judged {
  belief what = belief::no;
  bool crc_good = false;
  bool crc_wrong = false;
};

/// The header fields by which one segment continues another.
struct segment_fields {
  bool tagged = false;
  bool last = false;
  rdmap::opcode op{};
  std::uint64_t key = 0;     // STag; or QN and MSN
  std::uint64_t offset = 0;  // TO or MO
  std::size_t payload = 0;
};

std::optional<segment_fields> fields_of(const_bytes head, std::size_t ulpdu_size) noexcept {
  if (head.empty()) return std::nullopt;
  segment_fields f;
  f.tagged = ddp::is_tagged(head[0]);
  if (f.tagged) {
    const auto h = ddp::tagged_header::parse(head);
    if (!h) return std::nullopt;
    f.last = h->last;
    f.op = rdmap::opcode_of(h->ulp_control);
    f.key = h->stag.value;
    f.offset = h->offset;
    f.payload = ulpdu_size - ddp::tagged_header_size;
  } else {
    const auto h = ddp::untagged_header::parse(head);
    if (!h) return std::nullopt;
    f.last = h->last;
    f.op = rdmap::opcode_of(h->ulp_control);
    f.key = std::uint64_t{h->queue} << 32 | h->sequence.value;
    f.offset = h->offset;
    f.payload = ulpdu_size - ddp::untagged_header_size;
  }
  return f;
}

bool continues(const segment_fields& before, const segment_fields& now) noexcept {
  if (before.tagged != now.tagged || before.op != now.op) return false;
  if (!before.last) return before.key == now.key && now.offset == before.offset + before.payload;
  if (before.tagged) return before.key == now.key && now.offset == before.offset + before.payload;
  return now.key == before.key + 1 && now.offset == 0;
}

/// Follows a chain from index `at` on. `need_marker`: it counts only once a marker that is no 0 was seen.
judged follow(const_bytes octets, std::uint64_t offset, std::size_t at, const framing& how, bool need_marker) noexcept {
  judged j;
  unsigned bits = 0;
  bool marker_seen = false;
  std::optional<segment_fields> before;
  for (int links = 0; links != longest_chain; ++links) {
    const const_bytes in = octets.subspan(at);
    const bool markers = how.markers.value_or(false);
    const std::uint64_t position = markers ? how.position(offset + at) : 0;
    const auto e = measure(in, markers, position);
    j.what = belief::open;
    if (!e) return j;
    const const_bytes fpdu = in.subspan(e->lead);
    if (e->lead != 0 && load_be<std::uint32_t>(in.first<4>()) != 0) return {};
    std::array<std::byte, ddp::untagged_header_size> scratch{};
    const std::size_t header = copy_ulpdu(fpdu, *e, scratch);
    const const_bytes head = const_bytes(scratch).first(header);
    if (e->ulpdu_size < ddp::tagged_header_size) return {};
    if (header < 2) return j;
    const likeness like = likeness_of(head, e->ulpdu_size);
    if (like == likeness::none) return {};
    if (header < std::min(e->ulpdu_size, scratch.size())) return j;
    if (like == likeness::weak) return {};
    bits += like == likeness::tagged ? bits_tagged : bits_untagged;
    for (std::size_t m = e->first_marker; markers && e->lead + m + 4 <= e->total; m += mpa::marker_interval) {
      if (fpdu.size() < m + 4) return j;
      if (load_be<std::uint32_t>(fpdu.subspan(m).first<4>()) != m) return {};
      bits += bits_marker;
      marker_seen = true;
    }
    if (in.size() < e->total) return j;
    const std::uint32_t field = load_le<std::uint32_t>(in.subspan(e->total - 4).first<4>());
    if (how.crc.value_or(true)) {
      // A marker in front of ULPDU_Length is part of this FPDU's CRC (RFC 5044 s4.4).
      if (mpa::crc32c(in.first(e->total - 4)) == field) {
        j.crc_good = true;
        bits += bits_crc;
      } else {
        if (how.crc || j.crc_good) return {};
        j.crc_wrong = true;
      }
    }
    if (field == 0 && !how.crc.value_or(false)) bits += bits_zero_crc;
    const auto now = fields_of(head, e->ulpdu_size);
    if (before && now && continues(*before, *now)) bits += bits_continued;
    before = now;
    if (at + e->total == octets.size()) bits += bits_edge;
    if (bits >= enough && (marker_seen || !need_marker)) {
      j.what = belief::yes;
      return j;
    }
    at += e->total;
  }
  return {};
}

}  // namespace

hunt_result hunt(const_bytes octets, std::uint64_t offset, std::size_t begin, const framing& known, bool other_only,
                 bool at_end) noexcept {
  hunt_result r;
  r.how = known;
  // FPDUs lie at multiples of four octets from where full operation began (RFC 5044 s4.1).
  const auto possible = [&](std::size_t at) { return !known.alignment || (offset + at) % 4 == *known.alignment; };
  for (std::size_t at = begin; at < octets.size(); ++at) {
    if (!possible(at)) continue;
    const bool skip_known = other_only && at == begin;
    const const_bytes in = octets.subspan(at);
    bool open = false;
    const auto attempt = [&](const framing& how, bool need_marker) {
      const judged j = follow(octets, offset, at, how, need_marker);
      if (j.what == belief::open) open = true;
      if (j.what != belief::yes) return false;
      r.what = hunt_result::outcome::found;
      r.at = at;
      r.how = how;
      if (!r.how.crc && (j.crc_good || j.crc_wrong)) r.how.crc = j.crc_good;
      r.how.alignment = static_cast<std::uint32_t>((offset + at) % 4);
      return true;
    };
    // Whoever believes in no markers takes a marker for payload, so they are tried first where they may be. Of a stream
    // whose phase is known one distance to the next marker is possible, else each at which a word points back here.
    const bool try_markers =
        !(skip_known && known.markers.value_or(false)) && (!known.markers || *known.markers || other_only);
    if (try_markers && known.phase && (known.markers || other_only)) {
      framing how = known;
      how.markers = true;
      if (attempt(how, !known.markers.value_or(false))) return r;
    } else if (try_markers && !known.phase && in.size() >= 4) {
      const std::size_t length = load_be<std::uint16_t>(in.first<2>());
      if (in.size() >= 12 && likeness_of(in.subspan(2, 2), length) != likeness::none) {
        const std::size_t furthest = std::min({in.size() - 4, mpa::marker_interval, length + 8});
        for (std::size_t d = 4; d <= furthest; d += 4) {
          if (load_be<std::uint32_t>(in.subspan(d).first<4>()) != d) continue;
          framing how = known;
          how.markers = true;
          how.phase = static_cast<std::uint32_t>((offset + at + d) % mpa::marker_interval);
          if (attempt(how, true)) return r;
        }
      }
      if (load_be<std::uint32_t>(in.first<4>()) == 0 && in.size() >= 8 &&
          likeness_of(in.subspan(6, 2), load_be<std::uint16_t>(in.subspan(4).first<2>())) != likeness::none) {
        framing how = known;
        how.markers = true;
        how.phase = static_cast<std::uint32_t>((offset + at) % mpa::marker_interval);
        // Elsewhere not worth waiting for: the octets may be a CRC field that is not in use.
        const bool was_open = open;
        if (attempt(how, true)) return r;
        if (!skip_known) open = was_open;
      }
    }
    const bool try_plain =
        !(skip_known && !known.markers.value_or(false)) && (!known.markers.value_or(false) || other_only);
    if (try_plain) {
      framing how = known;
      how.markers = known.markers ? std::optional(false) : std::nullopt;
      if (attempt(how, false)) {
        if (known.markers.value_or(false)) r.how.markers = false;
        return r;
      }
    }
    if (open && !at_end) {
      r.what = hunt_result::outcome::more;
      r.at = at;
      return r;
    }
  }
  r.what = hunt_result::outcome::none;
  r.at = octets.size();
  return r;
}

}  // namespace iwarp::dump
