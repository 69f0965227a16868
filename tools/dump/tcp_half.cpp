#include "tools/dump/tcp_half.hpp"

#include <algorithm>
#include <cstring>

namespace iwarp::dump {

std::int64_t tcp_half::beyond(std::uint32_t acknowledged) const noexcept {
  // The FIN takes a sequence number, too.
  const std::uint32_t reached = base_ + static_cast<std::uint32_t>(next_) + (ended_ && fin_at_ ? 1u : 0u);
  return static_cast<std::int32_t>(acknowledged - reached);
}

void tcp_half::add(const tcp_segment& s, octet_consumer& out) {
  if (ended_ && s.length == 0) return;
  // Everything counts in offsets from here, and those do not wrap.
  const std::int64_t distance = static_cast<std::int32_t>(s.first() - (base_ + static_cast<std::uint32_t>(next_)));
  const std::int64_t at = static_cast<std::int64_t>(next_) + distance;
  if (s.fin && !fin_at_ && at + static_cast<std::int64_t>(s.length) >= static_cast<std::int64_t>(next_)) {
    fin_at_ = static_cast<std::uint64_t>(at + static_cast<std::int64_t>(s.length));
    fin_frame_ = s.frame;
  }
  if (s.length != 0 && !ended_) {
    const std::size_t captured = std::min(s.payload.size(), s.length);
    const_bytes octets = s.payload.first(captured);
    std::size_t snapped = s.length - captured;
    std::uint64_t offset = next_;
    if (at < static_cast<std::int64_t>(next_)) {
      const auto old = static_cast<std::uint64_t>(static_cast<std::int64_t>(next_) - at);
      const std::size_t seen = static_cast<std::size_t>(std::min<std::uint64_t>(old, octets.size()));
      // A keep-alive repeats one octet, which may be anything.
      if (s.length > 1 && at >= 0) compare(static_cast<std::uint64_t>(at), octets.first(seen), s.frame, out);
      octets = octets.subspan(seen);
      snapped -= static_cast<std::size_t>(std::min<std::uint64_t>(old - seen, snapped));
    } else {
      offset = static_cast<std::uint64_t>(at);
    }
    if (offset == next_ && waiting_.empty()) {
      hand_on(octets, snapped, s.frame, out);
    } else if (!octets.empty() || snapped != 0) {
      keep(offset, octets, snapped, s.frame, out);
      hand_on_waiting(out);
    }
  }
  if (fin_at_ && next_ >= *fin_at_ && !ended_) finish(ending::fin, fin_frame_, out);
}

void tcp_half::hand_on(const_bytes octets, std::size_t snapped, frame_ref frame, octet_consumer& out) {
  if (!octets.empty()) {
    const std::uint64_t offset = next_;
    next_ += octets.size();
    if (!history_.empty()) {
      const const_bytes kept = octets.last(std::min(octets.size(), history_size));
      const std::size_t at = static_cast<std::size_t>((next_ - kept.size()) % history_size);
      const std::size_t run = std::min(kept.size(), history_size - at);
      std::memcpy(history_.data() + at, kept.data(), run);
      if (run != kept.size()) std::memcpy(history_.data(), kept.data() + run, kept.size() - run);
    }
    out.on_octets(from_, offset, octets, frame);
  }
  if (snapped != 0) {
    const std::uint64_t offset = next_;
    next_ += snapped;
    out.on_hole(from_, offset, snapped, hole_kind::snapped, frame);
  }
}

void tcp_half::hand_on_waiting(octet_consumer& out) {
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    const auto node = waiting_.extract(waiting_.begin());
    const piece& p = node.mapped();
    waiting_octets_ -= p.octets.size() + piece_overhead;
    memory_.octets -= p.octets.size() + piece_overhead;
    hand_on(p.octets, p.snapped, p.frame, out);
  }
}

void tcp_half::keep(std::uint64_t offset, const_bytes octets, std::size_t snapped, frame_ref frame,
                    octet_consumer& out) {
  // Into the gaps between the pieces that wait already: what came first stays.
  while (!octets.empty() || snapped != 0) {
    const auto after = waiting_.upper_bound(offset);
    if (after != waiting_.begin()) {
      const auto& [begin, before] = *std::prev(after);
      const std::uint64_t end = begin + before.size();
      if (end > offset) {
        const std::uint64_t at = offset - begin;
        const std::size_t covered = static_cast<std::size_t>(std::min<std::uint64_t>(octets.size(), end - offset));
        if (at < before.octets.size()) {
          const std::size_t both = std::min(covered, before.octets.size() - static_cast<std::size_t>(at));
          if (std::memcmp(before.octets.data() + at, octets.data(), both) != 0) {
            out.on_overlap(from_, offset, both, frame);
          }
        }
        octets = octets.subspan(covered);
        snapped -= static_cast<std::size_t>(std::min<std::uint64_t>(end - offset - covered, snapped));
        offset = end;
        continue;
      }
    }
    const std::uint64_t room = after == waiting_.end() ? octets.size() + snapped : after->first - offset;
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(octets.size(), room));
    const std::size_t cut = static_cast<std::size_t>(std::min<std::uint64_t>(snapped, room - size));
    piece p{
        .octets = {octets.begin(), octets.begin() + static_cast<std::ptrdiff_t>(size)}, .snapped = cut, .frame = frame};
    waiting_.emplace(offset, std::move(p));
    waiting_octets_ += size + piece_overhead;
    memory_.octets += size + piece_overhead;
    octets = octets.subspan(size);
    snapped -= cut;
    offset += size + cut;
  }
}

void tcp_half::compare(std::uint64_t offset, const_bytes octets, frame_ref frame, octet_consumer& out) const {
  if (history_.empty()) return;
  for (std::size_t i = 0; i != octets.size(); ++i) {
    const std::uint64_t at = offset + i;
    if (at + history_size < next_ || at >= next_ || at < history_from_) continue;
    if (history_[static_cast<std::size_t>(at % history_size)] == octets[i]) continue;
    out.on_overlap(from_, at, octets.size() - i, frame);
    return;
  }
}

bool tcp_half::skip_hole(octet_consumer& out) {
  if (ended_) return false;
  std::uint64_t to = 0;
  frame_ref frame;
  if (!waiting_.empty()) {
    to = waiting_.begin()->first;
    frame = waiting_.begin()->second.frame;
  } else if (fin_at_ && *fin_at_ > next_) {
    to = *fin_at_;
    frame = fin_frame_;
  } else {
    return false;
  }
  skip_to(to, frame, out);
  return true;
}

void tcp_half::skip_to(std::uint64_t offset, frame_ref frame, octet_consumer& out) {
  const std::uint64_t from = next_;
  next_ = offset;
  out.on_hole(from_, from, offset - from, hole_kind::missing, frame);
  hand_on_waiting(out);
  if (fin_at_ && next_ >= *fin_at_ && !ended_) finish(ending::fin, fin_frame_, out);
}

void tcp_half::finish(ending how, frame_ref frame, octet_consumer& out) {
  if (ended_) return;
  if (how != ending::fin) {
    while (skip_hole(out)) {
    }
    if (ended_) return;
  }
  ended_ = true;
  memory_.octets -= waiting_octets_;
  waiting_octets_ = 0;
  waiting_.clear();
  history_ = {};
  out.on_end(from_, how, frame);
}

}  // namespace iwarp::dump
