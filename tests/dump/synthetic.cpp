#include "tests/dump/synthetic.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

#include "ddp/header.hpp"
#include "mpa/tx_batch.hpp"

namespace iwarp::dump_test {
namespace {

std::byte byte_of(std::size_t v) { return static_cast<std::byte>(v & 0xFF); }

void put16(octets& out, std::size_t v) {
  out.push_back(byte_of(v >> 8));
  out.push_back(byte_of(v));
}
void put32(octets& out, std::uint32_t v) {
  put16(out, v >> 16);
  put16(out, v & 0xFFFF);
}
void put64(octets& out, std::uint64_t v) {
  put32(out, static_cast<std::uint32_t>(v >> 32));
  put32(out, static_cast<std::uint32_t>(v));
}
void put_little(octets& out, std::uint64_t v, int size) {
  for (int i = 0; i != size; ++i) out.push_back(byte_of(v >> (8 * i)));
}

octets startup_octets(mpa::frame_kind kind, const startup& s) {
  mpa::startup_frame f;
  f.header = {.kind = kind, .markers = s.markers, .crc = s.crc, .rejected = s.rejected, .revision = s.revision};
  if (s.revision >= 2) f.enhanced = s.enhanced;
  std::ranges::copy(s.private_data, f.data.begin());
  f.data_size = s.private_data.size();
  std::array<std::byte, mpa::startup_fixed_size + mpa::max_private_data> out{};
  const std::size_t size = f.emit(out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace

octets operator+(octets a, const octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

octets from_hex(std::string_view text) {
  octets out;
  int have = 0;
  unsigned value = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    const unsigned digit = static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    value = value << 4 | digit;
    if (++have % 2 == 0) out.push_back(byte_of(value));
  }
  return out;
}

octets counted(std::size_t size, std::size_t first) {
  octets out(size);
  for (std::size_t i = 0; i != size; ++i) out[i] = byte_of((first + i) % 251);
  return out;
}

octets tagged(rdmap::opcode op, std::uint32_t stag, std::uint64_t to, const octets& payload, bool last) {
  octets out(ddp::tagged_header_size);
  ddp::tagged_header{.last = last, .ulp_control = rdmap::control_octet(op), .stag = {stag}, .offset = to}.emit(
      std::span<std::byte, ddp::tagged_header_size>(out));
  return out + payload;
}

octets untagged(rdmap::opcode op, std::uint32_t queue, std::uint32_t msn, const octets& payload, std::uint32_t mo,
                bool last, std::uint32_t invalidate) {
  octets out(ddp::untagged_header_size);
  ddp::untagged_header{.last = last,
                       .ulp_control = rdmap::control_octet(op),
                       .invalidate = {invalidate},
                       .queue = queue,
                       .sequence = {msn},
                       .offset = mo}
      .emit(std::span<std::byte, ddp::untagged_header_size>(out));
  return out + payload;
}

octets write(std::uint32_t stag, std::uint64_t to, const octets& payload, bool last) {
  return tagged(rdmap::opcode::write, stag, to, payload, last);
}
octets send(std::uint32_t msn, const octets& payload, std::uint32_t mo, bool last) {
  return untagged(rdmap::opcode::send, 0, msn, payload, mo, last);
}
octets read_request(std::uint32_t msn, const rdmap::read_request& r) {
  octets body(rdmap::read_request_size);
  r.emit(std::span<std::byte, rdmap::read_request_size>(body));
  return untagged(rdmap::opcode::read_request, 1, msn, body);
}
octets read_response(std::uint32_t stag, std::uint64_t to, const octets& payload, bool last) {
  return tagged(rdmap::opcode::read_response, stag, to, payload, last);
}
octets atomic_request(std::uint32_t msn, const rdmap::atomic_request& r) {
  octets body(rdmap::atomic_request_size);
  r.emit(std::span<std::byte, rdmap::atomic_request_size>(body));
  return untagged(rdmap::opcode::atomic_request, 1, msn, body);
}
octets atomic_response(std::uint32_t msn, const rdmap::atomic_response& r) {
  octets body(rdmap::atomic_response_size);
  r.emit(std::span<std::byte, rdmap::atomic_response_size>(body));
  return untagged(rdmap::opcode::atomic_response, 3, msn, body);
}
octets terminate(const octets& content, std::uint32_t msn) {
  return untagged(rdmap::opcode::terminate, 2, msn, content);
}

octets fpdu_stream::operator()(const octets& ulpdu) {
  // No sender of this stack makes an FPDU without a ULPDU: ULPDU_Length 0, two octets of PAD, their CRC. No markers.
  if (ulpdu.empty()) return from_hex("00000000 c74b6748");
  mpa::tx_batch batch;
  const std::size_t head = std::min<std::size_t>(ulpdu.size(), 18);
  const const_bytes payload = const_bytes(ulpdu).subspan(head);
  const const_bytes pieces[] = {payload};
  tx_.frame(batch, const_bytes(ulpdu).first(head), std::span(pieces, payload.empty() ? 0 : 1));
  octets out;
  for (const gather_piece& p : batch.pieces()) {
    const auto* data = static_cast<const std::byte*>(p.data);
    out.insert(out.end(), data, data + p.size);
  }
  return out;
}

octets request(const startup& s) { return startup_octets(mpa::frame_kind::request, s); }
octets reply(const startup& s) { return startup_octets(mpa::frame_kind::reply, s); }

int dlt(link l) noexcept {
  switch (l) {
    case link::ethernet:
    case link::vlan:
    case link::qinq:
      return DLT_EN10MB;
    case link::cooked:
      return DLT_LINUX_SLL;
    case link::cooked2:
      return DLT_LINUX_SLL2;
    case link::raw:
      return DLT_RAW;
    case link::loopback:
      return DLT_NULL;
  }
  return -1;
}

void tcp_talk::open() {
  raw(side::client, 0, {}, 0x02);
  ++next_[0];
  raw(side::server, 0, {}, 0x12);
  ++next_[1];
  acknowledge(side::client);
}

void tcp_talk::close() {
  for (const side s : {side::client, side::server}) {
    raw(s, 0, {}, 0x11);
    ++next_[dump::index_of(s)];
  }
  acknowledge(side::client);
}

void tcp_talk::reset(side from) { raw(from, 0, {}, 0x14); }

void tcp_talk::say(side from, const octets& data) {
  for (std::size_t at = 0; at < data.size(); at += options_.segment) {
    const std::size_t size = std::min(options_.segment, data.size() - at);
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(at);
    segment(from, octets(begin, begin + static_cast<std::ptrdiff_t>(size)));
  }
}

void tcp_talk::segment(side from, const octets& data) {
  raw(from, 0, data);
  next_[dump::index_of(from)] += static_cast<std::uint32_t>(data.size());
}

void tcp_talk::acknowledge(side from) { raw(from, 0, {}, 0x10); }

void tcp_talk::raw(side from, std::int64_t relative, const octets& data, std::uint8_t flags) {
  emit(from, next(from) + static_cast<std::uint32_t>(relative), flags, data);
}

void tcp_talk::emit(side from, std::uint32_t sequence, std::uint8_t flags, const octets& data) {
  const bool client = from == side::client;
  octets tcp;
  put16(tcp, client ? options_.client_port : options_.server_port);
  put16(tcp, client ? options_.server_port : options_.client_port);
  put32(tcp, sequence);
  put32(tcp, (flags & 0x10) != 0 ? next(other(from)) : 0);
  tcp.push_back(std::byte{0x50});
  tcp.push_back(byte_of(flags));
  put16(tcp, 65535);
  put32(tcp, 0);  // no checksum: captures with offload have none
  tcp = tcp + data;
  now += 10'000;
  const auto address = [&](octets& ip, bool of_client) {
    if (options_.ipv6) {
      put64(ip, 0x20010db800000000u);
      put64(ip, of_client ? 1 : 2);
    } else {
      put32(ip, of_client ? 0xC0000201u : 0xC0000202u);
    }
  };
  if (options_.ipv6) {
    octets extensions;
    for (int i = 0; i != options_.ipv6_extensions; ++i) {
      // Destination options behind each other, filled with a PadN.
      extensions = extensions + octets{byte_of(i + 1 == options_.ipv6_extensions ? 6 : 60),
                                       std::byte{0},
                                       std::byte{1},
                                       std::byte{4},
                                       {},
                                       {},
                                       {},
                                       {}};
    }
    const octets payload = extensions + tcp;
    octets ip;
    put32(ip, 0x60000000u);
    put16(ip, payload.size());
    ip.push_back(byte_of(options_.ipv6_extensions != 0 ? 60 : 6));
    ip.push_back(std::byte{64});
    address(ip, client);
    address(ip, !client);
    wrap(from, ip + payload);
    return;
  }
  const std::size_t piece = options_.fragment == 0 ? tcp.size() : options_.fragment;
  const std::uint16_t id = identification_++;
  for (std::size_t at = 0; at < tcp.size(); at += piece) {
    const std::size_t size = std::min(piece, tcp.size() - at);
    octets ip;
    put16(ip, 0x4500);
    put16(ip, 20 + size);
    put16(ip, id);
    put16(ip, (at + size < tcp.size() ? 0x2000u : 0u) | at / 8);
    put16(ip, 0x4006);
    put16(ip, 0);
    address(ip, client);
    address(ip, !client);
    const auto begin = tcp.begin() + static_cast<std::ptrdiff_t>(at);
    wrap(from, ip + octets(begin, begin + static_cast<std::ptrdiff_t>(size)));
  }
}

void tcp_talk::wrap(side from, const octets& ip) {
  const std::size_t type = options_.ipv6 ? 0x86DD : 0x0800;
  octets out;
  switch (options_.layer) {
    case link::ethernet:
    case link::vlan:
    case link::qinq:
      put16(out, 0x0200);
      put32(out, from == side::client ? 2 : 1);
      put16(out, 0x0200);
      put32(out, from == side::client ? 1 : 2);
      if (options_.layer == link::qinq) put32(out, 0x88A80007u);
      if (options_.layer != link::ethernet) put32(out, 0x81000064u);
      put16(out, type);
      break;
    case link::cooked:
      put16(out, 0);
      put16(out, 1);
      put16(out, 6);
      put64(out, 0);
      put16(out, type);
      break;
    case link::cooked2:
      put16(out, type);
      put16(out, 0);
      put32(out, 1);
      put16(out, 1);
      put16(out, 6);
      put64(out, 0);
      break;
    case link::raw:
      break;
    case link::loopback:
      put_little(out, options_.ipv6 ? 30 : 2, 4);
      break;
  }
  out = out + ip;
  if (options_.layer == link::ethernet && out.size() < 60) out.resize(60, std::byte{0xEE});  // padding is not payload
  frame f{.data = std::move(out), .length = 0, .time = now};
  f.length = f.data.size();
  if (options_.snap != 0 && f.data.size() > options_.snap) f.data.resize(options_.snap);
  frames.push_back(std::move(f));
}

octets pcap_file(const std::vector<frame>& frames, int link_type) {
  octets out;
  put_little(out, 0xA1B23C4Du, 4);
  put_little(out, 2, 2);
  put_little(out, 4, 2);
  put_little(out, 0, 8);
  put_little(out, 262144, 4);
  // Files have numbers of their own for what differs between systems.
  put_little(out, link_type == DLT_RAW ? 101u : static_cast<unsigned>(link_type), 4);
  for (const frame& f : frames) {
    put_little(out, static_cast<std::uint64_t>(f.time / 1'000'000'000), 4);
    put_little(out, static_cast<std::uint64_t>(f.time % 1'000'000'000), 4);
    put_little(out, f.data.size(), 4);
    put_little(out, f.length, 4);
    out.insert(out.end(), f.data.begin(), f.data.end());
  }
  return out;
}

void write_pcap(const std::string& path, const std::vector<frame>& frames, int link_type) {
  const octets file = pcap_file(frames, link_type);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace iwarp::dump_test
