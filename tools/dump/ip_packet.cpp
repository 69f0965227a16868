#include "tools/dump/ip_packet.hpp"

#include <algorithm>

namespace iwarp::dump {
namespace {

constexpr std::size_t ipv4_header = 20;
constexpr std::size_t ipv6_header = 40;
constexpr std::size_t max_packet = 65535;
constexpr std::uint8_t protocol_tcp = 6;

std::uint8_t octet(const_bytes in, std::size_t at) noexcept { return std::to_integer<std::uint8_t>(in[at]); }
std::uint16_t word(const_bytes in, std::size_t at) noexcept {
  return load_be<std::uint16_t>(in.subspan(at).first<2>());
}

endpoint address_of(const_bytes octets) noexcept {
  endpoint e;
  e.ipv6 = octets.size() == 16;
  std::ranges::transform(octets, e.address.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return e;
}

}  // namespace

std::optional<ip_payload> ip_reader::read(const_bytes packet) {
  if (packet.empty()) return std::nullopt;
  return octet(packet, 0) >> 4 == 4 ? read_ipv4(packet) : read_ipv6(packet);
}

std::optional<ip_payload> ip_reader::read_ipv4(const_bytes packet) {
  if (packet.size() < ipv4_header) return std::nullopt;
  const std::size_t header = (octet(packet, 0) & 0x0Fu) * 4u;
  std::size_t total = word(packet, 2);
  if (total == 0) total = packet.size();  // captured before segmentation offload filled it in
  if (header < ipv4_header || total < header || packet.size() < header) return std::nullopt;
  if (octet(packet, 9) != protocol_tcp) return std::nullopt;
  ip_payload out{.from = address_of(packet.subspan(12, 4)), .to = address_of(packet.subspan(16, 4))};
  // Ethernet pads short frames: the length is IP's, never the frame's.
  out.octets = packet.subspan(header, std::min(total, packet.size()) - header);
  out.length = total - header;
  const std::uint16_t fragment = word(packet, 6);
  const bool more = (fragment & 0x2000) != 0;
  const std::size_t at = (fragment & 0x1FFFu) * 8u;
  if (!more && at == 0) return out;
  if (out.octets.size() != out.length) return std::nullopt;  // a cut fragment leaves a hole that TCP will show
  if (!add_fragment({.from = out.from.address, .to = out.to.address, .identification = word(packet, 4), .ipv6 = false},
                    at, more, out.octets)) {
    return std::nullopt;
  }
  out.octets = whole_;
  out.length = whole_.size();
  return out;
}

std::optional<ip_payload> ip_reader::read_ipv6(const_bytes packet) {
  if (packet.size() < ipv6_header || octet(packet, 0) >> 4 != 6) return std::nullopt;
  std::size_t length = word(packet, 4);
  if (length == 0) length = packet.size() - ipv6_header;
  std::uint8_t next = octet(packet, 6);
  const_bytes rest = packet.subspan(ipv6_header, std::min(length, packet.size() - ipv6_header));
  ip_payload out{.from = address_of(packet.subspan(8, 16)), .to = address_of(packet.subspan(24, 16))};
  for (;;) {
    std::size_t size = 0;
    switch (next) {
      case protocol_tcp:
        out.octets = rest;
        out.length = length;
        return out;
      case 0:    // hop-by-hop options
      case 43:   // routing
      case 60:   // destination options
      case 135:  // mobility
        if (rest.size() < 8) return std::nullopt;
        size = (octet(rest, 1) + 1u) * 8u;
        break;
      case 51:  // authentication
        if (rest.size() < 8) return std::nullopt;
        size = (octet(rest, 1) + 2u) * 4u;
        break;
      case 44: {  // fragment
        if (rest.size() < 8) return std::nullopt;
        const std::uint16_t fragment = word(rest, 2);
        const bool more = (fragment & 1) != 0;
        const std::size_t at = fragment & 0xFFF8u;
        const auto identification = load_be<std::uint32_t>(rest.subspan<4, 4>());
        const std::uint8_t carried = octet(rest, 0);
        const const_bytes piece = rest.subspan(8);
        if (more || at != 0) {
          // Extension headers within the fragmented part (all but unheard of before TCP) are not followed.
          if (carried != protocol_tcp || length < 8 || piece.size() != length - 8) return std::nullopt;
          const fragment_key key{
              .from = out.from.address, .to = out.to.address, .identification = identification, .ipv6 = true};
          if (!add_fragment(key, at, more, piece)) return std::nullopt;
          out.octets = whole_;
          out.length = whole_.size();
          return out;
        }
        size = 8;  // an atomic fragment
        break;
      }
      default:
        return std::nullopt;
    }
    if (rest.size() < size || length < size) return std::nullopt;
    next = octet(rest, 0);
    rest = rest.subspan(size);
    length -= size;
  }
}

bool ip_reader::add_fragment(const fragment_key& key, std::size_t at, bool more, const_bytes octets) {
  if (at + octets.size() > max_packet || octets.empty()) return false;
  auto found = unfinished_.find(key);
  if (found == unfinished_.end()) {
    if (unfinished_.size() == max_unfinished) {
      unfinished_.erase(by_age_.front());
      by_age_.pop_front();
    }
    found = unfinished_.emplace(key, unfinished{}).first;
    found->second.age = by_age_.insert(by_age_.end(), key);
  }
  unfinished& u = found->second;
  const std::size_t end = at + octets.size();
  if (!more) {
    if (u.total && *u.total != end) return false;  // two ends: somebody lies
    u.total = end;
  }
  if (u.octets.size() < end) u.octets.resize(end);
  // What came first stays: only the gaps between what is there are filled.
  for (std::size_t begin = at; begin < end;) {
    auto after = u.have.upper_bound(begin);
    if (after != u.have.begin() && std::prev(after)->second > begin) {
      begin = std::prev(after)->second;
      continue;
    }
    const std::size_t stop = after == u.have.end() ? end : std::min(end, after->first);
    std::ranges::copy(octets.subspan(begin - at, stop - begin), u.octets.begin() + static_cast<std::ptrdiff_t>(begin));
    u.have[begin] = stop;
    begin = stop;
  }
  if (!u.total) return false;
  std::size_t reached = 0;
  for (const auto& [begin, stop] : u.have) {
    if (begin != reached) return false;
    reached = stop;
  }
  if (reached != *u.total) return false;
  whole_ = std::move(u.octets);
  by_age_.erase(u.age);
  unfinished_.erase(found);
  return true;
}

}  // namespace iwarp::dump
