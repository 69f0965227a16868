#include "rdmap/terminate.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

namespace iwarp::rdmap {
namespace {

// Octet 2 of the control word (RFC 5040 s4.8).
constexpr std::uint8_t length_valid_bit = 0x80;  // M
constexpr std::uint8_t ddp_header_bit = 0x40;    // D
constexpr std::uint8_t rdma_header_bit = 0x20;   // R
constexpr std::uint8_t header_bits = length_valid_bit | ddp_header_bit | rdma_header_bit;
// Where a little-endian siw puts them.
constexpr std::uint8_t siw_length_valid_bit = 0x01;
constexpr std::uint8_t siw_ddp_header_bit = 0x02;
constexpr std::uint8_t siw_rdma_header_bit = 0x04;
constexpr std::uint8_t siw_header_bits = siw_length_valid_bit | siw_ddp_header_bit | siw_rdma_header_bit;

constexpr term_entry local_failure{{0, 0, 0x00}, term_headers::none};

constexpr term_entry protection(std::uint8_t code, term_headers headers) noexcept { return {{0, 1, code}, headers}; }
constexpr term_entry operation(std::uint8_t code, term_headers headers) noexcept { return {{0, 2, code}, headers}; }
constexpr term_entry tagged(std::uint8_t code) noexcept { return {{1, 1, code}, term_headers::ddp}; }
constexpr term_entry untagged(std::uint8_t code) noexcept { return {{1, 2, code}, term_headers::ddp}; }
constexpr term_entry llp(std::uint8_t code) noexcept { return {{2, 0, code}, term_headers::none}; }

}  // namespace

std::optional<term_entry> terminate_for(mpa::errc e) noexcept {
  switch (e) {  // no default
    case mpa::errc::crc_mismatch:
      return llp(0x02);
    case mpa::errc::marker_mismatch:
      return llp(0x03);
    case mpa::errc::local_catastrophic:
      return llp(0x05);
    case mpa::errc::insufficient_ird:
      return llp(0x06);
    case mpa::errc::no_matching_rtr:
      return llp(0x07);
    // RFC 5044 s8: after a bad start-up frame TCP is closed at once, there may be no RDMAP at the other end.
    case mpa::errc::bad_key:
    case mpa::errc::same_role:
    case mpa::errc::bad_revision:
    case mpa::errc::bad_private_data:
    case mpa::errc::unexpected_octets:
    case mpa::errc::not_enhanced:
    case mpa::errc::startup_cut_short:
    case mpa::errc::startup_timeout:
    case mpa::errc::rejected:
    case mpa::errc::markers_refused:
    // Nothing more gets through, or nobody is there to read it.
    case mpa::errc::tcp_lost:
    case mpa::errc::first_fpdu_timeout:
    case mpa::errc::fpdu_timeout:
      return std::nullopt;
  }
  return local_failure;
}

std::optional<term_entry> terminate_for(ddp::errc e) noexcept {
  switch (e) {  // no default
    // RFC 5040 s4.8: no header with a local catastrophic error; a segment too short for its header has none to show.
    case ddp::errc::local_catastrophic:
    case ddp::errc::segment_too_short:
      return term_entry{{1, 0, 0x00}, term_headers::none};
    case ddp::errc::tagged_invalid_stag:
      return tagged(0x00);
    case ddp::errc::tagged_base_or_bounds:
      return tagged(0x01);
    case ddp::errc::tagged_not_associated:
      return tagged(0x02);
    case ddp::errc::tagged_no_access:  // RFC 5041 has no code for it; VERBS figure 23 has this one
      return tagged(0x02);
    case ddp::errc::tagged_offset_wrap:
      return tagged(0x03);
    case ddp::errc::tagged_bad_version:
      return tagged(0x04);
    case ddp::errc::untagged_invalid_queue:
      return untagged(0x01);
    case ddp::errc::untagged_no_buffer:
      return untagged(0x02);
    case ddp::errc::untagged_msn_out_of_range:
      return untagged(0x03);
    case ddp::errc::untagged_invalid_offset:
      return untagged(0x04);
    case ddp::errc::untagged_too_long:
      return untagged(0x05);
    case ddp::errc::untagged_bad_version:
      return untagged(0x06);
  }
  return local_failure;
}

std::optional<term_entry> terminate_for(errc e) noexcept {
  switch (e) {  // no default
    case errc::local_catastrophic:
      return local_failure;
    // RFC 5040 s7.1: an error in a Read Request MUST show its DDP and RDMA headers.
    case errc::source_invalid_stag:
      return protection(0x00, term_headers::ddp_and_read_request);
    case errc::source_base_or_bounds:
      return protection(0x01, term_headers::ddp_and_read_request);
    case errc::source_no_access:
      return protection(0x02, term_headers::ddp_and_read_request);
    case errc::source_not_associated:
      return protection(0x03, term_headers::ddp_and_read_request);
    case errc::source_offset_wrap:
      return protection(0x04, term_headers::ddp_and_read_request);
    // ... and in a Send only the DDP header.
    case errc::invalidate_invalid_stag:
      return protection(0x00, term_headers::ddp);
    case errc::invalidate_no_access:
      return protection(0x02, term_headers::ddp);
    case errc::invalidate_not_associated:
      return protection(0x03, term_headers::ddp);
    case errc::cannot_invalidate:
      return protection(0x09, term_headers::ddp);
    case errc::bad_version:
      return operation(0x05, term_headers::ddp);
    case errc::unexpected_opcode:
      return operation(0x06, term_headers::ddp);
    case errc::stream_catastrophic:
    case errc::message_not_single:
      return operation(0x07, term_headers::ddp);
    // No segment of the peer is to blame.
    case errc::peer_closed_with_work:
    case errc::cq_overflow:
      return operation(0x07, term_headers::none);
    case errc::device_catastrophic:
      return operation(0x08, term_headers::none);
    case errc::unspecified:
      return operation(0xFF, term_headers::ddp);
    case errc::terminated_by_peer:  // VERBS s6.2: a Terminate MUST NOT be answered with a Terminate
      return std::nullopt;
  }
  return local_failure;
}

std::optional<term_entry> terminate_for(std::error_code e) noexcept {
  if (e.category() == mpa::error_category()) return terminate_for(static_cast<mpa::errc>(e.value()));
  if (e.category() == ddp::error_category()) return terminate_for(static_cast<ddp::errc>(e.value()));
  if (e.category() == error_category()) return terminate_for(static_cast<errc>(e.value()));
  return local_failure;
}

result<terminate_message> terminate_message::parse(const_bytes in) noexcept {
  if (in.size() < term_control_size) return fail(errc::unspecified);
  const auto class_octet = std::to_integer<std::uint8_t>(in[0]);
  const auto high = static_cast<std::uint8_t>(class_octet >> 4);
  const auto low = static_cast<std::uint8_t>(class_octet & 0x0F);
  const auto code_octet = std::to_integer<std::uint8_t>(in[1]);
  auto control = std::to_integer<std::uint8_t>(in[2]);

  terminate_message message;
  message.code = {high, low, code_octet};
  // siw declares the word as C bit-fields, which a little-endian compiler fills from the other end (siw_qp.c,
  // siw_send_terminate). No peer that follows RFC 5040 s4.8 sets these bits, and without its own M, D and R the headers
  // would be lost: they tell which request failed.
  if ((control & siw_header_bits) != 0 && (control & header_bits) == 0) {
    message.swapped_reading = term_code{low, high, code_octet};
    std::uint8_t meant = 0;
    if ((control & siw_length_valid_bit) != 0) meant |= length_valid_bit;
    if ((control & siw_ddp_header_bit) != 0) meant |= ddp_header_bit;
    if ((control & siw_rdma_header_bit) != 0) meant |= rdma_header_bit;
    control = meant;
  }

  const_bytes rest = in.subspan(term_control_size);
  if ((control & ddp_header_bit) != 0) {
    if (rest.size() < 2) return message;
    message.segment_length = load_be<std::uint16_t>(rest.first<2>());
    message.segment_length_valid = (control & length_valid_bit) != 0;
    rest = rest.subspan(2);
    if (rest.empty()) return message;
    const std::size_t size = ddp::is_tagged(rest[0]) ? ddp::tagged_header_size : ddp::untagged_header_size;
    if (rest.size() < size) return message;
    std::copy_n(rest.begin(), size, message.ddp_header.begin());
    message.ddp_header_size = size;
    rest = rest.subspan(size);
  }
  if ((control & rdma_header_bit) != 0 && rest.size() >= read_request_size) {
    message.request = read_request::parse(rest.first<read_request_size>());
  }
  return message;
}

std::size_t terminate_message::emit(std::span<std::byte, max_terminate_size> out) const noexcept {
  assert(code.layer <= 0x0F && code.type <= 0x0F);
  assert(ddp_header_size == 0 || ddp_header_size == ddp::tagged_header_size ||
         ddp_header_size == ddp::untagged_header_size);
  const bool with_ddp_header = ddp_header_size != 0;
  std::uint8_t control = 0;
  // RFC 5040 s4.8: the length is there only along with a DDP header, so M without D would speak of nothing.
  if (with_ddp_header && segment_length_valid) control |= length_valid_bit;
  if (with_ddp_header) control |= ddp_header_bit;
  if (request) control |= rdma_header_bit;
  out[0] = static_cast<std::byte>((code.layer << 4) | code.type);
  out[1] = static_cast<std::byte>(code.code);
  out[2] = static_cast<std::byte>(control);
  out[3] = std::byte{0};

  std::size_t used = term_control_size;
  if (with_ddp_header) {
    store_be(out.subspan<term_control_size, 2>(), segment_length);
    used += 2;
    std::copy_n(ddp_header.begin(), ddp_header_size, out.begin() + static_cast<std::ptrdiff_t>(used));
    used += ddp_header_size;
  }
  if (request) {
    request->emit(out.subspan(used).first<read_request_size>());
    used += read_request_size;
  }
  return used;
}

namespace {

struct words {
  std::string_view where;
  std::string_view what;
};

constexpr std::string_view unknown = "unknown code";

// RFC 5040 s4.8.
words rdmap_words(std::uint8_t type, std::uint8_t code) noexcept {
  switch (type) {
    case 0:
      return {"RDMAP local catastrophic error", "details are private to the sender"};
    case 1:
      switch (code) {
        case 0x00:
          return {"RDMAP remote protection error", "invalid STag"};
        case 0x01:
          return {"RDMAP remote protection error", "base or bounds violation"};
        case 0x02:
          return {"RDMAP remote protection error", "access rights violation"};
        case 0x03:
          return {"RDMAP remote protection error", "STag not associated with the stream"};
        case 0x04:
          return {"RDMAP remote protection error", "TO wrap"};
        case 0x09:
          return {"RDMAP remote protection error", "STag cannot be invalidated"};
        case 0xFF:
          return {"RDMAP remote protection error", "unspecified error"};
        default:
          return {"RDMAP remote protection error", unknown};
      }
    case 2:
      switch (code) {
        case 0x05:
          return {"RDMAP remote operation error", "invalid RDMAP version"};
        case 0x06:
          return {"RDMAP remote operation error", "unexpected opcode"};
        case 0x07:
          return {"RDMAP remote operation error", "catastrophic error, local to the stream"};
        case 0x08:
          return {"RDMAP remote operation error", "catastrophic error, global"};
        case 0x09:
          return {"RDMAP remote operation error", "STag cannot be invalidated"};
        case 0xFF:
          return {"RDMAP remote operation error", "unspecified error"};
        default:
          return {"RDMAP remote operation error", unknown};
      }
    default:
      return {"RDMAP, unknown error type", unknown};
  }
}

// RFC 5041 s7.2.
words ddp_words(std::uint8_t type, std::uint8_t code) noexcept {
  switch (type) {
    case 0:
      return {"DDP local catastrophic error", code == 0x00 ? std::string_view("no details") : unknown};
    case 1:
      switch (code) {
        case 0x00:
          return {"DDP tagged buffer", "invalid STag"};
        case 0x01:
          return {"DDP tagged buffer", "base or bounds violation"};
        case 0x02:
          return {"DDP tagged buffer", "STag not associated with the stream"};
        case 0x03:
          return {"DDP tagged buffer", "TO wrap"};
        case 0x04:
          return {"DDP tagged buffer", "invalid DDP version"};
        default:
          return {"DDP tagged buffer", unknown};
      }
    case 2:
      switch (code) {
        case 0x01:
          return {"DDP untagged buffer", "invalid QN"};
        case 0x02:
          return {"DDP untagged buffer", "no buffer"};
        case 0x03:
          return {"DDP untagged buffer", "MSN out of range"};
        case 0x04:
          return {"DDP untagged buffer", "invalid MO"};
        case 0x05:
          return {"DDP untagged buffer", "message too long for its buffer"};
        case 0x06:
          return {"DDP untagged buffer", "invalid DDP version"};
        default:
          return {"DDP untagged buffer", unknown};
      }
    case 3:
      return {"DDP, error type reserved for the LLP", unknown};
    default:
      return {"DDP, unknown error type", unknown};
  }
}

// RFC 5044 s8, RFC 6581 s8.
words mpa_words(std::uint8_t type, std::uint8_t code) noexcept {
  if (type != 0) return {"MPA, unknown error type", unknown};
  switch (code) {
    case 0x01:
      return {"MPA", "TCP connection closed, terminated or lost"};
    case 0x02:
      return {"MPA", "CRC mismatch"};
    case 0x03:
      return {"MPA", "marker and ULPDU_Length disagree"};
    case 0x04:
      return {"MPA", "invalid Request or Reply frame"};
    case 0x05:
      return {"MPA", "local catastrophic error"};
    case 0x06:
      return {"MPA", "insufficient IRD resources"};
    case 0x07:
      return {"MPA", "no matching RTR option"};
    default:
      return {"MPA", unknown};
  }
}

words words_for(term_code code) noexcept {
  switch (code.layer) {
    case 0:
      return rdmap_words(code.type, code.code);
    case 1:
      return ddp_words(code.type, code.code);
    case 2:
      return mpa_words(code.type, code.code);
    default:
      return {"unknown layer", unknown};
  }
}

}  // namespace

std::string describe(term_code code) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const words w = words_for(code);
  std::string text;
  text.append(w.where).append(": ").append(w.what);
  text.append(" (").append(std::to_string(code.layer)).append("/").append(std::to_string(code.type)).append("/");
  text.push_back(digits[code.code >> 4]);
  text.push_back(digits[code.code & 0x0F]);
  text.push_back(')');
  return text;
}

}  // namespace iwarp::rdmap
