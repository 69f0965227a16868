#include "ddp/header.hpp"

#include "ddp/error.hpp"

#include <cassert>

namespace iwarp::ddp {
namespace {

// Reserved bits are sent as 0 (RFC 5041 s4.1).
std::byte control_octet(bool tagged, bool last) noexcept {
  return static_cast<std::byte>((tagged ? tagged_bit : 0) | (last ? last_bit : 0) | version);
}

// RFC 5041 s4.1: DV is 1 on every segment; the reserved bits are not checked.
bool version_fits(std::byte control) noexcept {
  return (std::to_integer<std::uint8_t>(control) & version_mask) == version;
}

bool last_of(std::byte control) noexcept { return (std::to_integer<std::uint8_t>(control) & last_bit) != 0; }

}  // namespace

result<tagged_header> tagged_header::parse(const_bytes in) noexcept {
  if (in.empty()) return fail(errc::segment_too_short);
  assert(is_tagged(in[0]));
  // The version first: only of version 1 is it known how long the header is.
  if (!version_fits(in[0])) return fail(errc::tagged_bad_version);
  if (in.size() < tagged_header_size) return fail(errc::segment_too_short);
  const auto wire = in.first<tagged_header_size>();
  return tagged_header{.last = last_of(wire[0]),
                       .ulp_control = std::to_integer<std::uint8_t>(wire[1]),
                       .stag = {load_be<std::uint32_t>(wire.subspan<2, 4>())},
                       .offset = load_be<std::uint64_t>(wire.subspan<6, 8>())};
}

void tagged_header::emit(std::span<std::byte, tagged_header_size> out) const noexcept {
  out[0] = control_octet(true, last);
  out[1] = static_cast<std::byte>(ulp_control);
  store_be(out.subspan<2, 4>(), stag.value);
  store_be(out.subspan<6, 8>(), offset);
}

result<untagged_header> untagged_header::parse(const_bytes in) noexcept {
  if (in.empty()) return fail(errc::segment_too_short);
  assert(!is_tagged(in[0]));
  if (!version_fits(in[0])) return fail(errc::untagged_bad_version);
  if (in.size() < untagged_header_size) return fail(errc::segment_too_short);
  const auto wire = in.first<untagged_header_size>();
  return untagged_header{.last = last_of(wire[0]),
                         .ulp_control = std::to_integer<std::uint8_t>(wire[1]),
                         .invalidate = {load_be<std::uint32_t>(wire.subspan<2, 4>())},
                         .queue = load_be<std::uint32_t>(wire.subspan<6, 4>()),
                         .sequence = {load_be<std::uint32_t>(wire.subspan<10, 4>())},
                         .offset = load_be<std::uint32_t>(wire.subspan<14, 4>())};
}

void untagged_header::emit(std::span<std::byte, untagged_header_size> out) const noexcept {
  out[0] = control_octet(false, last);
  out[1] = static_cast<std::byte>(ulp_control);
  store_be(out.subspan<2, 4>(), invalidate.value);
  store_be(out.subspan<6, 4>(), queue);
  store_be(out.subspan<10, 4>(), sequence.value);
  store_be(out.subspan<14, 4>(), offset);
}

}  // namespace iwarp::ddp
