#include "tools/dump/connection.hpp"

#include <algorithm>
#include <utility>

namespace iwarp::dump {
namespace {

constexpr std::size_t held_overhead = 256;
// An acknowledgement further ahead than any window is no acknowledgement of this connection.
constexpr std::int64_t largest_window = std::int64_t{1} << 30;
// So many segments may wait in vain before acknowledgement numbers are taken for made up.
constexpr unsigned patience = 256;

}  // namespace

connection::connection(const reassembly_limits& limits, memory_use& memory, const tcp_segment& first)
    : limits_(limits),
      memory_(memory),
      client_(first.syn && first.ack ? first.to : first.from),
      server_(first.syn && first.ack ? first.from : first.to),
      halves_{{{side::client, memory}, {side::server, memory}}} {}

connection::~connection() { memory_.octets -= held_octets_; }

bool connection::is_another(const tcp_segment& s) noexcept {
  if (!settled_) {
    return std::ranges::any_of(held_, [&](const held_segment& h) {
      return s.syn && h.segment.syn && h.segment.from == s.from && h.segment.sequence != s.sequence;
    });
  }
  tcp_half& h = half(side_of(s));
  // A SYN that does not repeat the one that opened this connection opens another one between the same ports.
  if (s.syn) return h.begun() && h.base() != s.first() && (!s.ack || over());
  return over() && s.length != 0 && h.beyond(s.first() + static_cast<std::uint32_t>(s.length)) > 0;
}

connection::verdict connection::add(const tcp_segment& s, octet_consumer& out) {
  if (is_another(s)) return verdict::another_connection;
  if (ignored_) {
    // Only the beginning and the end still matter, to tell the next connection between these ports.
    tcp_half& h = half(side_of(s));
    if (s.syn && !h.begun()) h.begin(s.first());
    if (s.rst || s.fin) {
      half(side_of(s)).finish(s.rst ? ending::reset : ending::fin, s.frame, out);
      if (s.rst) half(other(side_of(s))).finish(ending::reset, s.frame, out);
    }
    return verdict::taken;
  }
  if (!settled_) {
    hold(s);
    const auto syn_from = [&](const endpoint& e) {
      return std::ranges::any_of(held_, [&](const held_segment& h) { return h.segment.syn && h.segment.from == e; });
    };
    if (held_.size() >= limits_.settle_segments || s.rst || memory_.octets > limits_.all_octets ||
        (syn_from(s.from) && syn_from(s.to))) {
      settle(out);
    }
    return verdict::taken;
  }
  pass(s, out);
  return verdict::taken;
}

void connection::hold(const tcp_segment& s) {
  held_segment h{.segment = s, .octets = {s.payload.begin(), s.payload.end()}};
  h.segment.payload = h.octets;
  held_octets_ += h.octets.size() + held_overhead;
  memory_.octets += h.octets.size() + held_overhead;
  held_.push_back(std::move(h));
}

connection::held_segment connection::take_held(std::size_t at) {
  held_segment h = std::move(held_[at]);
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
  held_octets_ -= h.octets.size() + held_overhead;
  memory_.octets -= h.octets.size() + held_overhead;
  return h;
}

void connection::settle(octet_consumer& out) {
  settled_ = true;
  for (const held_segment& h : held_) {
    if (!h.segment.syn) continue;
    client_ = h.segment.ack ? h.segment.to : h.segment.from;
    server_ = h.segment.ack ? h.segment.from : h.segment.to;
  }
  // Each direction begins at its SYN, else at the earliest octets among those looked at.
  for (const held_segment& h : held_) {
    const tcp_segment& s = h.segment;
    const side from = side_of(s);
    tcp_half& target = half(from);
    if (s.syn) {
      target.begin(s.first());
      syn_seen_[index_of(from)] = true;
    } else if (s.length != 0 && !syn_seen_[index_of(from)] &&
               (!target.begun() || static_cast<std::int32_t>(s.first() - target.base()) < 0)) {
      target.begin(s.first());
    }
  }
  for (std::size_t left = held_.size(); left != 0 && !held_.empty(); --left) {
    const held_segment h = take_held(0);
    pass(h.segment, out);
  }
}

void connection::pass(const tcp_segment& s, octet_consumer& out) {
  if (must_wait(s)) {
    hold(s);
  } else {
    process(s, out);
    if (!held_.empty()) release(out);
  }
  while (held_.size() > limits_.held_segments || (!held_.empty() && memory_.octets > limits_.all_octets)) give_up(out);
  for (tcp_half& h : halves_) {
    while (h.waiting_octets() > limits_.half_octets ||
           (h.waiting_octets() != 0 && memory_.octets > limits_.all_octets)) {
      if (!h.skip_hole(out)) break;
    }
  }
}

bool connection::must_wait(const tcp_segment& s) noexcept {
  if (!s.ack || s.rst || s.syn) return false;
  const side peer = other(side_of(s));
  tcp_half& h = half(peer);
  if (!h.begun() || h.ended()) return false;
  if (in_vain_[index_of(peer)] > patience) return false;
  const std::int64_t ahead = h.beyond(s.acknowledged);
  return ahead > 0 && ahead <= largest_window;
}

void connection::process(const tcp_segment& s, octet_consumer& out) {
  const side from = side_of(s);
  tcp_half& h = half(from);
  if (s.rst) {
    for (const side which : {from, other(from)}) {
      half(which).finish(ending::reset, s.frame, out);
    }
    return;
  }
  if (s.syn) syn_seen_[index_of(from)] = true;
  if (s.ack && half(other(from)).begun()) {
    const tcp_half& peer = half(other(from));
    const std::int64_t ahead = peer.beyond(s.acknowledged);
    if (ahead <= 0 && static_cast<std::uint64_t>(-ahead) <= peer.next()) {
      auto& reached = acknowledged_[index_of(other(from))];
      reached = std::max(reached, peer.next() - static_cast<std::uint64_t>(-ahead));
    }
  }
  if (!h.begun()) {
    if (!s.syn && s.length == 0 && !s.fin) return;  // a bare acknowledgement may be a keep-alive, one octet behind
    h.begin(s.first());
  }
  h.add(s, out);
}

void connection::release(octet_consumer& out) {
  for (std::size_t i = 0; i < held_.size();) {
    if (must_wait(held_[i].segment)) {
      ++i;
      continue;
    }
    const held_segment h = take_held(i);
    process(h.segment, out);
    i = 0;
  }
}

void connection::give_up(octet_consumer& out) {
  const tcp_segment& s = held_.front().segment;
  const side peer = other(side_of(s));
  tcp_half& h = half(peer);
  // Octets of the peer wait behind the hole, in its half or here: it is one. Else the peer's octets may not have been
  // captured at all, or the acknowledgement numbers may be made up: the segment has waited long enough, and a hole
  // shows when octets behind it come.
  const held_segment* nearest = nullptr;
  bool next_is_here = false;
  for (const held_segment& other : held_) {
    if (other.segment.from != s.to || other.segment.length == 0) continue;
    const std::int64_t ahead = h.beyond(other.segment.first());
    if (ahead <= 0 && ahead + static_cast<std::int64_t>(other.segment.length) > 0) {
      next_is_here = true;  // no hole, then
      break;
    }
    if (ahead > 0 && ahead <= largest_window && (!nearest || ahead < h.beyond(nearest->segment.first()))) {
      nearest = &other;
    }
  }
  const std::uint64_t reach = nearest ? h.next() + static_cast<std::uint64_t>(h.beyond(nearest->segment.first())) : 0;
  if (!next_is_here && nearest && !h.ended() && reach < h.first_waiting().value_or(reach + 1)) {
    in_vain_[index_of(peer)] = 0;
    h.skip_to(reach, nearest->segment.frame, out);
  } else if (!next_is_here && h.skip_hole(out)) {
    in_vain_[index_of(peer)] = 0;
  } else {
    ++in_vain_[index_of(peer)];
    if (held_.empty()) return;  // the consumer gave the connection up
    const held_segment first = take_held(0);
    process(first.segment, out);
  }
  release(out);
}

void connection::finish(frame_ref last, octet_consumer& out) {
  if (!settled_ && !ignored_) settle(out);
  while (!held_.empty()) give_up(out);
  for (tcp_half& h : halves_) h.finish(ending::capture_end, last, out);
}

void connection::remember() {
  for (tcp_half& h : halves_) h.remember();
}

void connection::ignore() {
  ignored_ = true;
  memory_.octets -= held_octets_;
  held_octets_ = 0;
  held_.clear();
}

}  // namespace iwarp::dump
