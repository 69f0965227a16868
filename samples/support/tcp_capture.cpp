#include "samples/support/tcp_capture.hpp"

#include <arpa/inet.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace iwarp::capture {
namespace {

constexpr std::size_t ethernet_header = 14;
constexpr std::size_t vlan_tag = 4;
constexpr std::size_t ipv4_header = 20;
constexpr std::size_t ipv6_header = 40;
constexpr std::size_t tcp_header = 20;
constexpr std::uint8_t protocol_tcp = 6;

std::uint8_t octet(const_bytes in, std::size_t at) { return std::to_integer<std::uint8_t>(in[at]); }
std::uint16_t word(const_bytes in, std::size_t at) { return load_be<std::uint16_t>(in.subspan(at).first<2>()); }
std::uint32_t long_word(const_bytes in, std::size_t at) { return load_be<std::uint32_t>(in.subspan(at).first<4>()); }

endpoint address_of(const_bytes octets) {
  endpoint e;
  e.ipv6 = octets.size() == 16;
  std::transform(octets.begin(), octets.end(), e.address.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return e;
}

/// Distance from `from` to `to` in sequence space, negative when `to` lies before `from`.
std::int64_t distance(std::uint32_t from, std::uint32_t to) { return static_cast<std::int32_t>(to - from); }

}  // namespace

std::string to_string(const endpoint& e) {
  char host[INET6_ADDRSTRLEN] = {};
  inet_ntop(e.ipv6 ? AF_INET6 : AF_INET, e.address.data(), host, sizeof host);
  std::string text;
  if (e.ipv6) text += '[';
  text += host;
  if (e.ipv6) text += ']';
  text += ':';
  text += std::to_string(e.port);
  return text;
}

struct stream_rebuilder::segment {
  std::uint32_t sequence = 0;
  bool syn = false;
  bool ack = false;
  bool fin = false;
  bool rst = false;
  const_bytes payload;      // as far as captured
  std::size_t length = 0;   // of the payload on the wire
  std::uint32_t index = 0;  // of the frame
};

void stream_rebuilder::add(const_bytes frame, std::uint32_t index) {
  if (frame.size() < ethernet_header) return;
  std::size_t at = ethernet_header;
  std::uint16_t type = word(frame, 12);
  while (type == 0x8100 || type == 0x88a8) {  // 802.1Q, 802.1ad
    if (frame.size() < at + vlan_tag) return;
    type = word(frame, at + 2);
    at += vlan_tag;
  }
  if (type == 0x0800) add_ipv4(frame.subspan(at), index);
  if (type == 0x86dd) add_ipv6(frame.subspan(at), index);
}

void stream_rebuilder::add_ipv4(const_bytes packet, std::uint32_t index) {
  if (packet.size() < ipv4_header || octet(packet, 0) >> 4 != 4) return;
  const std::size_t header = (octet(packet, 0) & 0x0fu) * 4u;
  std::size_t total = word(packet, 2);
  if (total == 0) total = packet.size();  // captured before segmentation offload filled it in
  const bool fragment = (word(packet, 6) & 0x3fff) != 0;
  if (header < ipv4_header || total < header || packet.size() < header || fragment) return;
  if (octet(packet, 9) != protocol_tcp) return;
  // Ethernet pads short frames: the length is IP's, never the frame's.
  const const_bytes captured = packet.subspan(header, std::min(total, packet.size()) - header);
  add_tcp(address_of(packet.subspan(12, 4)), address_of(packet.subspan(16, 4)), captured, total - header, index);
}

void stream_rebuilder::add_ipv6(const_bytes packet, std::uint32_t index) {
  if (packet.size() < ipv6_header || octet(packet, 0) >> 4 != 6) return;
  std::size_t length = word(packet, 4);
  if (length == 0) length = packet.size() - ipv6_header;
  std::uint8_t next = octet(packet, 6);
  const_bytes rest = packet.subspan(ipv6_header, std::min(length, packet.size() - ipv6_header));
  while (next == 0 || next == 43 || next == 60) {  // hop-by-hop, routing, destination options
    if (rest.size() < 8) return;
    const std::size_t size = (octet(rest, 1) + 1u) * 8u;
    if (rest.size() < size) return;
    next = octet(rest, 0);
    rest = rest.subspan(size);
    length -= size;
  }
  if (next != protocol_tcp) return;
  add_tcp(address_of(packet.subspan(8, 16)), address_of(packet.subspan(24, 16)), rest, length, index);
}

void stream_rebuilder::add_tcp(const endpoint& from, const endpoint& to, const_bytes captured, std::size_t length,
                               std::uint32_t index) {
  if (captured.size() < tcp_header) return;
  const std::size_t header = (octet(captured, 12) >> 4) * 4u;
  if (header < tcp_header || captured.size() < header) return;
  const std::uint8_t flags = octet(captured, 13);
  const segment s{.sequence = long_word(captured, 4),
                  .syn = (flags & 0x02) != 0,
                  .ack = (flags & 0x10) != 0,
                  .fin = (flags & 0x01) != 0,
                  .rst = (flags & 0x04) != 0,
                  .payload = captured.subspan(header),
                  .length = length - header,
                  .index = index};
  endpoint source = from;
  endpoint target = to;
  source.port = word(captured, 0);
  target.port = word(captured, 2);

  const auto known = latest_.find({source, target});
  bool fresh = known == latest_.end();
  if (!fresh && s.syn && !s.ack) {
    // A SYN that does not repeat the one that opened the stream opens another stream between the same ports.
    const connection& c = connections_[known->second];
    const auto d = source == c.stream.client ? direction::to_server : direction::to_client;
    const half_state& h = c.halves[static_cast<std::size_t>(d)];
    const auto begun_at = h.next - static_cast<std::uint32_t>(c.stream.half(d).octets.size());
    fresh = d == direction::to_client || (h.begun && begun_at != s.sequence + 1);
  }
  if (fresh) {
    connection c;
    const bool from_server = s.syn && s.ack;
    c.stream.client = from_server ? target : source;
    c.stream.server = from_server ? source : target;
    latest_[{source, target}] = latest_[{target, source}] = connections_.size();
    connections_.push_back(std::move(c));
  }
  connection& c = connections_[latest_[{source, target}]];
  add_segment(c, source == c.stream.client ? direction::to_server : direction::to_client, s);
}

void stream_rebuilder::add_segment(connection& c, direction d, const segment& s) {
  half_state& h = c.halves[static_cast<std::size_t>(d)];
  half_stream& out = c.stream.half(d);
  if (s.rst) {
    if (out.closed == closing::open) out.closed = closing::reset;
    return;
  }
  const std::uint32_t first = s.sequence + (s.syn ? 1u : 0u);  // SYN takes a sequence number
  if (!h.begun) {
    if (!s.syn && s.length == 0) return;  // a bare acknowledgement may be a keep-alive, one octet behind
    h.begun = true;
    h.next = first;
  }
  if (s.fin && !h.fin_seen) {
    h.fin_seen = true;
    h.fin_at = first + static_cast<std::uint32_t>(s.length);
  }
  // Everything below counts in offsets from the start of the stream, which do not wrap.
  const auto in_order = static_cast<std::int64_t>(out.octets.size());
  std::int64_t at = in_order + distance(h.next, first);
  const_bytes payload = s.payload;
  if (at < in_order) {
    const auto seen = static_cast<std::size_t>(in_order - at);
    payload = payload.subspan(std::min(seen, payload.size()));
    at = in_order;
  }
  if (static_cast<std::uint64_t>(at) == out.octets.size()) {
    // As far as the next segment that waits: what came first stays.
    const auto limit = h.waiting.empty() ? payload.size() : h.waiting.begin()->first - out.octets.size();
    const auto taken = std::min<std::size_t>(payload.size(), limit);
    append(c, d, payload.first(taken), s.index);
    payload = payload.subspan(taken);
    at += static_cast<std::int64_t>(taken);
  }
  // What is left waits, cut into the holes between the segments that wait already.
  auto offset = static_cast<std::uint64_t>(at);
  while (!payload.empty()) {
    auto after = h.waiting.upper_bound(offset);
    if (after != h.waiting.begin()) {
      const auto before = std::prev(after);
      const std::uint64_t end = before->first + before->second.size();
      if (end > offset) {
        const auto covered = std::min<std::size_t>(payload.size(), end - offset);
        payload = payload.subspan(covered);
        offset += covered;
        continue;
      }
    }
    const std::size_t size =
        after == h.waiting.end() ? payload.size() : std::min<std::size_t>(payload.size(), after->first - offset);
    h.waiting.emplace(offset,
                      std::vector<std::byte>(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size)));
    payload = payload.subspan(size);
    offset += size;
  }
  while (!h.waiting.empty() && h.waiting.begin()->first == out.octets.size()) {
    const auto node = h.waiting.extract(h.waiting.begin());
    append(c, d, node.mapped(), s.index);
  }
  if (h.fin_seen && h.next == h.fin_at && out.closed == closing::open) out.closed = closing::fin;
}

void stream_rebuilder::append(connection& c, direction d, const_bytes octets, std::uint32_t index) {
  if (octets.empty()) return;
  half_stream& out = c.stream.half(d);
  c.stream.pieces.push_back({.dir = d, .begin = out.octets.size(), .size = octets.size(), .frame_index = index});
  out.octets.insert(out.octets.end(), octets.begin(), octets.end());
  c.halves[static_cast<std::size_t>(d)].next += static_cast<std::uint32_t>(octets.size());
}

std::vector<tcp_stream> stream_rebuilder::finish() {
  std::vector<tcp_stream> streams;
  for (connection& c : connections_) {
    for (const direction d : {direction::to_server, direction::to_client}) {
      const half_state& h = c.halves[static_cast<std::size_t>(d)];
      half_stream& out = c.stream.half(d);
      std::uint64_t end = out.octets.size();
      if (!h.waiting.empty()) end = h.waiting.rbegin()->first + h.waiting.rbegin()->second.size();
      out.missing = end - out.octets.size();
      if (h.fin_seen && out.closed == closing::open && distance(h.next, h.fin_at) > 0) {
        out.missing = std::max(out.missing, static_cast<std::uint64_t>(distance(h.next, h.fin_at)));
      }
    }
    streams.push_back(std::move(c.stream));
  }
  return streams;
}

tl::expected<std::vector<tcp_stream>, std::string> read_streams(const std::filesystem::path& file) {
  char reason[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> pcap(pcap_open_offline(file.c_str(), reason), &pcap_close);
  if (!pcap) {
    const std::string text = reason;  // libpcap names the file in some of its texts
    return tl::unexpected(text.find(file.string()) == std::string::npos ? file.string() + ": " + text : text);
  }
  if (pcap_datalink(pcap.get()) != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(pcap_datalink(pcap.get()));
    return tl::unexpected(file.string() + ": link layer " + (name ? name : "unknown") +
                          " is not supported, only Ethernet");
  }
  stream_rebuilder rebuilder;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int got = 0;
  for (std::uint32_t index = 1; (got = pcap_next_ex(pcap.get(), &header, &data)) == 1; ++index) {
    rebuilder.add(as_const_bytes(data, header->caplen), index);
  }
  if (got == PCAP_ERROR) return tl::unexpected(file.string() + ": " + pcap_geterr(pcap.get()));
  return rebuilder.finish();
}

}  // namespace iwarp::capture
