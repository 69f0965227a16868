#include "tools/dump/tcp_segment.hpp"

namespace iwarp::dump {
namespace {

constexpr std::size_t least_header = 20;
constexpr std::uint8_t fin_bit = 0x01;
constexpr std::uint8_t syn_bit = 0x02;
constexpr std::uint8_t rst_bit = 0x04;
constexpr std::uint8_t ack_bit = 0x10;

}  // namespace

std::optional<tcp_segment> parse_segment(const ip_payload& ip, frame_ref frame) noexcept {
  const const_bytes in = ip.octets;
  if (in.size() < least_header) return std::nullopt;
  const std::size_t header = (std::to_integer<unsigned>(in[12]) >> 4) * 4u;
  if (header < least_header || ip.length < header) return std::nullopt;
  const auto flags = std::to_integer<std::uint8_t>(in[13]);
  tcp_segment s{.from = ip.from, .to = ip.to};
  s.from.port = load_be<std::uint16_t>(in.subspan<0, 2>());
  s.to.port = load_be<std::uint16_t>(in.subspan<2, 2>());
  s.sequence = load_be<std::uint32_t>(in.subspan<4, 4>());
  s.acknowledged = load_be<std::uint32_t>(in.subspan<8, 4>());
  s.syn = (flags & syn_bit) != 0;
  s.ack = (flags & ack_bit) != 0;
  s.fin = (flags & fin_bit) != 0;
  s.rst = (flags & rst_bit) != 0;
  if (in.size() > header) s.payload = in.subspan(header);
  s.length = ip.length - header;
  s.frame = frame;
  return s;
}

}  // namespace iwarp::dump
