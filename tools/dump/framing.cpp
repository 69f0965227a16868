#include "tools/dump/framing.hpp"

#include <algorithm>
#include <limits>

#include "ddp/header.hpp"
#include "rdmap/atomic.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "rdmap/terminate.hpp"

namespace iwarp::dump {
namespace {

constexpr std::uint8_t ddp_reserved = 0x3C;
constexpr std::uint8_t rdmap_reserved = 0x30;
constexpr std::size_t queue_at = 6;  // of an untagged header

/// Payload sizes that the opcode prescribes.
bool size_fits(rdmap::opcode op, std::size_t payload) noexcept {
  switch (op) {
    case rdmap::opcode::read_request:
      return payload == rdmap::read_request_size;
    case rdmap::opcode::terminate:
      return payload >= rdmap::term_control_size;
    case rdmap::opcode::immediate:
    case rdmap::opcode::immediate_solicited:
      return payload == rdmap::immediate_size;
    case rdmap::opcode::atomic_request:
      return payload == rdmap::atomic_request_size;
    case rdmap::opcode::atomic_response:
      return payload == rdmap::atomic_response_size;
    case rdmap::opcode::write:
    case rdmap::opcode::read_response:
    case rdmap::opcode::send:
    case rdmap::opcode::send_invalidate:
    case rdmap::opcode::send_solicited:
    case rdmap::opcode::send_solicited_invalidate:
      return true;
  }
  return false;
}

}  // namespace

std::optional<extent> measure(const_bytes in, bool markers, std::uint64_t position) noexcept {
  extent e;
  e.lead = markers && mpa::marker_due(position) ? mpa::marker_size : 0;
  if (in.size() < e.lead + mpa::length_field_size) return std::nullopt;
  e.ulpdu_size = load_be<std::uint16_t>(in.subspan(e.lead).first<2>());
  const std::size_t plain = mpa::padded_size(e.ulpdu_size);
  if (!markers) {
    e.first_marker = std::numeric_limits<std::size_t>::max();
    e.body = plain;
    e.total = plain + mpa::crc_field_size;
    return e;
  }
  e.first_marker = mpa::marker_distance(position + e.lead);
  e.body = plain + mpa::marker_size * mpa::markers_within(plain, e.first_marker);
  // A marker due where PAD ends belongs to this FPDU: its CRC is still to come (RFC 5044 s4.3).
  const std::size_t with_crc = plain + mpa::crc_field_size;
  e.total = e.lead + with_crc + mpa::marker_size * mpa::markers_within(with_crc, e.first_marker);
  return e;
}

std::size_t copy_ulpdu(const_bytes fpdu, const extent& e, mutable_bytes out) noexcept {
  std::size_t done = 0;
  std::size_t at = mpa::length_field_size;
  std::size_t marker = e.first_marker;
  const std::size_t wanted = std::min(out.size(), e.ulpdu_size);
  while (done < wanted && at < fpdu.size()) {
    if (at == marker) {
      at += mpa::marker_size;
      marker += mpa::marker_interval;
      continue;
    }
    const std::size_t run = std::min({wanted - done, fpdu.size() - at, marker - at});
    std::copy_n(fpdu.begin() + static_cast<std::ptrdiff_t>(at), run, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += run;
    at += run;
  }
  return done;
}

likeness likeness_of(const_bytes head, std::size_t ulpdu_size) noexcept {
  if (head.size() < 2 || ulpdu_size < 2) return likeness::none;
  const auto ddp_control = std::to_integer<std::uint8_t>(head[0]);
  const auto rdmap_control = std::to_integer<std::uint8_t>(head[1]);
  if ((ddp_control & ddp::version_mask) != ddp::version) return likeness::none;
  if ((rdmap_control & rdmap::version_mask) != rdmap::version_bits) return likeness::none;
  const rdmap::opcode op = rdmap::opcode_of(rdmap_control);
  const rdmap::opcode_info& info = rdmap::info(op);
  const bool tagged = (ddp_control & ddp::tagged_bit) != 0;
  if (!info.assigned || info.tagged != tagged) return likeness::none;
  const std::size_t header = tagged ? ddp::tagged_header_size : ddp::untagged_header_size;
  if (ulpdu_size < header) return likeness::none;
  if ((ddp_control & ddp_reserved) != 0 || (rdmap_control & rdmap_reserved) != 0) return likeness::weak;
  if (tagged) return likeness::tagged;
  if (head.size() < queue_at + 4) return likeness::weak;
  if (load_be<std::uint32_t>(head.subspan(queue_at).first<4>()) != info.queue) return likeness::weak;
  return size_fits(op, ulpdu_size - header) ? likeness::untagged : likeness::weak;
}

}  // namespace iwarp::dump
