#include "mpa/fpdu_tx.hpp"

#include "mpa/crc32c.hpp"
#include "mpa/marker.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace iwarp::mpa {
namespace {

std::byte* put(std::byte* at, const_bytes octets) noexcept {
  if (octets.empty()) return at;
  std::memcpy(at, octets.data(), octets.size());
  return at + octets.size();
}

/// Whether the next payload piece is copied, given how much this FPDU has copied already.
bool goes_by_copy(std::size_t piece, std::size_t copied_before) noexcept {
  return piece <= tx_batch::copy_limit && piece <= tx_batch::copy_total - copied_before;
}

/// Appends one FPDU with markers, piece by piece: keeps the CRC and puts each marker where it is due.
class fpdu_writer {
 public:
  fpdu_writer(tx_batch& batch, std::uint64_t position, bool crc) noexcept
      : batch_(batch), position_(position), crc_on_(crc) {}

  void length_field(std::size_t ulpdu_size) noexcept {
    // A marker between two FPDUs belongs to the one that follows, its CRC included, and has FPDUPTR 0 (RFC 5044 s4.3,
    // s4.4): so the FPDU begins behind it, its CRC before it.
    if (marker_due(position_)) put_marker(0);
    start_ = position_;
    std::array<std::byte, length_field_size> field;
    store_be(std::span{field}, static_cast<std::uint16_t>(ulpdu_size));
    copy(field);
  }

  void copy(const_bytes octets) noexcept {
    in_runs(octets, [this](const_bytes run) { batch_.append_copy(run); });
  }

  void reference(const_bytes octets) noexcept {
    in_runs(octets, [this](const_bytes run) { batch_.append_reference(run); });
  }

  void crc_field() noexcept {
    // A marker between PAD and CRC belongs to the FPDU it follows and is covered by its CRC (RFC 5044 s4.4).
    if (marker_due(position_)) put_marker(distance());
    std::array<std::byte, crc_field_size> field;
    store_le(std::span{field}, crc_on_ ? crc_ : std::uint32_t{0});
    batch_.append_copy(field);
    position_ += crc_field_size;
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  template <class Append>
  void in_runs(const_bytes octets, Append append) noexcept {
    while (!octets.empty()) {
      if (marker_due(position_)) put_marker(distance());
      const std::size_t size = std::min(octets.size(), marker_distance(position_));
      const const_bytes run = octets.first(size);
      append(run);
      cover(run);
      position_ += size;
      octets = octets.subspan(size);
    }
  }

  void put_marker(std::size_t distance_to_length) noexcept {
    std::array<std::byte, marker_size> marker{};  // upper half reserved: zero
    store_be(std::span{marker}.subspan<2, 2>(), fpdu_pointer(distance_to_length));
    batch_.append_copy(marker);
    cover(marker);
    position_ += marker_size;
  }

  void cover(const_bytes octets) noexcept {
    if (crc_on_) crc_ = crc32c(octets, crc_);
  }

  [[nodiscard]] std::size_t distance() const noexcept { return static_cast<std::size_t>(position_ - start_); }

  tx_batch& batch_;
  std::uint64_t position_;
  std::uint64_t start_ = 0;  // position of ULPDU_Length
  std::uint32_t crc_ = 0;
  bool crc_on_;
};

}  // namespace

void fpdu_tx::start(bool crc, bool markers, std::uint64_t position) noexcept {
  assert(position % 4 == 0);
  position_ = position;
  crc_ = crc;
  markers_ = markers;
}

void fpdu_tx::frame(tx_batch& batch, const_bytes header, std::span<const const_bytes> payload) noexcept {
  std::size_t payload_size = 0;
  bool all_by_copy = true;
  for (const const_bytes piece : payload) {
    all_by_copy = all_by_copy && goes_by_copy(piece.size(), std::min(payload_size, tx_batch::copy_total));
    payload_size += piece.size();
  }
  const std::size_t ulpdu_size = header.size() + payload_size;
  assert(ulpdu_size >= 1 && ulpdu_size <= 65535);
  assert(payload.empty() || header.size() <= tx_batch::max_header);
  assert(batch.has_room(ulpdu_size, payload.size()));
  static constexpr std::array<std::byte, 3> zeros{};
  const std::size_t pad = padded_size(ulpdu_size) - length_field_size - ulpdu_size;  // MUST be zeros (RFC 5044 s4.1)

  if (all_by_copy && !markers_) {  // a small FPDU: one run of scratch, one pass of CRC over it
    const mutable_bytes out = batch.append_space(padded_size(ulpdu_size) + crc_field_size);
    store_be(out.first<length_field_size>(), static_cast<std::uint16_t>(ulpdu_size));
    std::byte* at = put(out.data() + length_field_size, header);
    for (const const_bytes piece : payload) at = put(at, piece);
    put(at, const_bytes{zeros}.first(pad));
    const std::uint32_t crc = crc_ ? crc32c(out.first(out.size() - crc_field_size)) : 0;
    store_le(out.last<crc_field_size>(), crc);
    position_ += out.size();
    return;
  }

  if (!markers_) {  // three runs: length and header, payload as it lies, PAD and CRC
    const mutable_bytes front = batch.append_space(length_field_size + header.size());
    store_be(front.first<length_field_size>(), static_cast<std::uint16_t>(ulpdu_size));
    put(front.data() + length_field_size, header);
    std::uint32_t crc = crc_ ? crc32c(front) : 0;
    std::size_t copied = 0;
    for (const const_bytes piece : payload) {
      if (goes_by_copy(piece.size(), copied)) {
        batch.append_copy(piece);
        copied += piece.size();
      } else {
        batch.append_reference(piece);
      }
      if (crc_) crc = crc32c(piece, crc);
    }
    const mutable_bytes back = batch.append_space(pad + crc_field_size);
    put(back.data(), const_bytes{zeros}.first(pad));
    if (crc_ && pad != 0) crc = crc32c(back.first(pad), crc);
    store_le(back.last<crc_field_size>(), crc);
    position_ += padded_size(ulpdu_size) + crc_field_size;
    return;
  }

  fpdu_writer writer(batch, position_, crc_);
  writer.length_field(ulpdu_size);
  writer.copy(header);
  std::size_t copied = 0;
  for (const const_bytes piece : payload) {
    if (goes_by_copy(piece.size(), copied)) {
      writer.copy(piece);
      copied += piece.size();
    } else {
      writer.reference(piece);
    }
  }
  writer.copy(const_bytes{zeros}.first(pad));
  writer.crc_field();
  position_ = writer.position();
}

}  // namespace iwarp::mpa
