#include "mpa/startup_frame.hpp"

#include "mpa/error.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

namespace iwarp::mpa {
namespace {

constexpr std::size_t key_size = 16;
constexpr std::string_view request_key = "MPA ID Req Frame";
constexpr std::string_view reply_key = "MPA ID Rep Frame";

// Octet 16. The low four bits are reserved: sent 0, not checked (RFC 5044 s7.1.1).
constexpr std::uint8_t markers_bit = 0x80;
constexpr std::uint8_t crc_bit = 0x40;
constexpr std::uint8_t rejected_bit = 0x20;
constexpr std::uint8_t enhanced_bit = 0x10;

// Flags above the 14-bit depths of the enhanced data (RFC 6581 s9).
constexpr std::uint16_t peer_to_peer_bit = 0x8000;  // A, word 0
constexpr std::uint16_t send_bit = 0x4000;          // B, word 0
constexpr std::uint16_t write_bit = 0x8000;         // C, word 1
constexpr std::uint16_t read_bit = 0x4000;          // D, word 1
constexpr std::uint16_t depth_mask = 0x3FFF;

constexpr std::uint8_t first_enhanced_revision = 2;

constexpr std::string_view key_of(frame_kind kind) noexcept {
  return kind == frame_kind::request ? request_key : reply_key;
}

/// Compares what is there of a key. The two keys differ in octet 9 alone, and differ there in no other way: a peer of
/// our own role is told from one of another protocol by that octet. Errors: bad_key, same_role.
result<> check_key(const_bytes in, frame_kind expected) noexcept {
  const std::string_view key = key_of(expected);
  const std::string_view other = key_of(expected == frame_kind::request ? frame_kind::reply : frame_kind::request);
  for (std::size_t i = 0; i != std::min(in.size(), key_size); ++i) {
    const char octet = static_cast<char>(in[i]);
    if (octet == key[i]) continue;
    return fail(octet == other[i] ? errc::same_role : errc::bad_key);
  }
  return {};
}

constexpr std::uint16_t flag(bool on, std::uint16_t bit) noexcept { return on ? bit : std::uint16_t{0}; }

}  // namespace

enhanced_data enhanced_data::parse(std::span<const std::byte, enhanced_data_size> in) noexcept {
  const auto ird_word = load_be<std::uint16_t>(in.first<2>());
  const auto ord_word = load_be<std::uint16_t>(in.last<2>());
  return {.peer_to_peer = (ird_word & peer_to_peer_bit) != 0,
          .rtr = {.send = (ird_word & send_bit) != 0,
                  .write = (ord_word & write_bit) != 0,
                  .read = (ord_word & read_bit) != 0},
          .ird = static_cast<std::uint16_t>(ird_word & depth_mask),
          .ord = static_cast<std::uint16_t>(ord_word & depth_mask)};
}

void enhanced_data::emit(std::span<std::byte, enhanced_data_size> out) const noexcept {
  assert(ird <= depth_mask && ord <= depth_mask);
  store_be(out.first<2>(),
           static_cast<std::uint16_t>(flag(peer_to_peer, peer_to_peer_bit) | flag(rtr.send, send_bit) | ird));
  store_be(out.last<2>(), static_cast<std::uint16_t>(flag(rtr.write, write_bit) | flag(rtr.read, read_bit) | ord));
}

result<startup_header> startup_header::parse(std::span<const std::byte, startup_fixed_size> in,
                                             frame_kind expected) noexcept {
  IWARP_CHECK(check_key(in, expected));
  const auto flags = std::to_integer<std::uint8_t>(in[16]);
  const auto revision = std::to_integer<std::uint8_t>(in[17]);
  if (revision != 1 && revision != 2) return fail(errc::bad_revision);
  const startup_header header{
      .kind = expected,
      .markers = (flags & markers_bit) != 0,
      .crc = (flags & crc_bit) != 0,
      // R MUST NOT be checked in a Request (RFC 5044 s7.1.1).
      .rejected = expected == frame_kind::reply && (flags & rejected_bit) != 0,
      .enhanced = revision >= first_enhanced_revision && (flags & enhanced_bit) != 0,
      .revision = revision,
      .private_data_length = load_be<std::uint16_t>(in.last<2>()),
  };
  const std::size_t least = header.enhanced ? enhanced_data_size : 0;
  if (header.private_data_length > max_private_data || header.private_data_length < least) {
    return fail(errc::bad_private_data);
  }
  return header;
}

void startup_header::emit(std::span<std::byte, startup_fixed_size> out) const noexcept {
  assert(!enhanced || revision >= first_enhanced_revision);
  assert(private_data_length <= max_private_data);
  std::ranges::transform(key_of(kind), out.begin(), [](char c) { return static_cast<std::byte>(c); });
  const std::uint16_t flags = static_cast<std::uint16_t>(flag(markers, markers_bit) | flag(crc, crc_bit) |
                                                         flag(rejected && kind == frame_kind::reply, rejected_bit) |
                                                         flag(enhanced, enhanced_bit));
  out[16] = static_cast<std::byte>(flags);
  out[17] = static_cast<std::byte>(revision);
  store_be(out.last<2>(), private_data_length);
}

std::size_t startup_frame::emit(std::span<std::byte, startup_fixed_size + max_private_data> out) const noexcept {
  const std::size_t enhanced_size = enhanced ? enhanced_data_size : 0;
  assert(data_size <= max_private_data - enhanced_size);
  startup_header whole = header;
  whole.enhanced = enhanced.has_value();
  whole.private_data_length = static_cast<std::uint16_t>(enhanced_size + data_size);
  whole.emit(out.first<startup_fixed_size>());
  if (enhanced) enhanced->emit(out.subspan<startup_fixed_size, enhanced_data_size>());
  std::ranges::copy(private_data(), out.subspan(startup_fixed_size + enhanced_size).begin());
  return startup_fixed_size + whole.private_data_length;
}

result<std::size_t> startup_reader::consume(const_bytes in) noexcept {
  if (error_) return fail(error_);
  std::size_t taken = 0;
  while (taken != in.size() && !complete()) {
    const std::size_t target =
        size_ < startup_fixed_size ? startup_fixed_size : startup_fixed_size + header_.private_data_length;
    const const_bytes run = in.subspan(taken, std::min(in.size() - taken, target - size_));
    std::ranges::copy(run, octets_.begin() + static_cast<std::ptrdiff_t>(size_));
    const bool had_key = size_ >= key_size;
    size_ += run.size();
    taken += run.size();
    if (!had_key) {
      if (auto key = check_key(const_bytes{octets_}.first(size_), expected_); !key) error_ = key.error();
    }
    if (!error_ && size_ == startup_fixed_size) {
      auto header = startup_header::parse(const_bytes{octets_}.first<startup_fixed_size>(), expected_);
      if (header) {
        header_ = *header;
      } else {
        error_ = header.error();
      }
    }
    if (error_) return fail(error_);
  }
  return taken;
}

bool startup_reader::complete() const noexcept {
  return !error_ && size_ >= startup_fixed_size && size_ == startup_fixed_size + header_.private_data_length;
}

startup_frame startup_reader::frame() const noexcept {
  assert(complete());
  startup_frame whole;
  whole.header = header_;
  const_bytes data = const_bytes{octets_}.subspan(startup_fixed_size, header_.private_data_length);
  if (header_.enhanced) {
    whole.enhanced = enhanced_data::parse(data.first<enhanced_data_size>());
    data = data.subspan(enhanced_data_size);
  }
  std::ranges::copy(data, whole.data.begin());
  whole.data_size = data.size();
  return whole;
}

}  // namespace iwarp::mpa
