#include "mpa/tx_batch.hpp"

#include "mpa/marker.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <utility>

namespace iwarp::mpa {
namespace {

/// Spare batches a pool keeps: each is about 64 KiB.
constexpr std::size_t most_spares = 64;

bool overlap(const gather_piece& piece, const_bytes region) noexcept {
  const auto* begin = static_cast<const std::byte*>(piece.data);
  const std::less<const std::byte*> before;
  return before(begin, region.data() + region.size()) && before(region.data(), begin + piece.size);
}

}  // namespace

bool tx_batch::has_room(std::size_t ulpdu_size, std::size_t payload_pieces) const noexcept {
  // Markers are counted as if the peer wanted them: one more than fit, since one may come in front.
  const std::size_t body = padded_size(ulpdu_size) + crc_field_size;
  const std::size_t markers = 1 + markers_within(body, marker_size);
  const std::size_t copied = payload_pieces == 0
                                 ? ulpdu_size
                                 : std::min(ulpdu_size, max_header + std::min(payload_pieces * copy_limit, copy_total));
  const std::size_t framing = body - ulpdu_size + markers * marker_size;
  // One piece from the length field on, one per payload piece, one behind it, two more wherever a marker cuts.
  const std::size_t pieces = 2 + payload_pieces + 2 * markers;
  return scratch_used_ + copied + framing <= scratch_size && end_ + pieces <= max_pieces;
}

mutable_bytes tx_batch::append_space(std::size_t size) noexcept {
  assert(size <= scratch_size - scratch_used_);
  std::byte* const at = scratch_.data() + scratch_used_;
  scratch_used_ += size;
  size_ += size;
  if (end_ != first_ && static_cast<const std::byte*>(pieces_[end_ - 1].data) + pieces_[end_ - 1].size == at) {
    pieces_[end_ - 1].size += size;
  } else if (size != 0) {
    push_piece(at, size);
  }
  return {at, size};
}

mutable_bytes tx_batch::append_copy(const_bytes octets) noexcept {
  const mutable_bytes space = append_space(octets.size());
  if (!octets.empty()) std::memcpy(space.data(), octets.data(), octets.size());
  return space;
}

void tx_batch::append_reference(const_bytes octets) noexcept {
  if (octets.empty()) return;
  push_piece(octets.data(), octets.size());
  size_ += octets.size();
}

void tx_batch::push_piece(const void* data, std::size_t size) noexcept {
  assert(end_ < max_pieces);
  pieces_[end_++] = {data, size};
}

std::span<const gather_piece> tx_batch::pieces() const noexcept { return {pieces_.data() + first_, end_ - first_}; }

std::size_t tx_batch::size() const noexcept { return size_; }

void tx_batch::advance(std::size_t n) noexcept {
  assert(n <= size_);
  size_ -= n;
  if (size_ == 0) {
    clear();
    return;
  }
  while (n >= pieces_[first_].size) n -= pieces_[first_++].size;
  pieces_[first_].data = static_cast<const std::byte*>(pieces_[first_].data) + n;
  pieces_[first_].size -= n;
}

void tx_batch::detach_piece(gather_piece& piece) {
  detached_.emplace_back(new std::byte[piece.size]);
  std::memcpy(detached_.back().get(), piece.data, piece.size);
  piece.data = detached_.back().get();
}

void tx_batch::detach(const_bytes region) {
  for (std::size_t i = first_; i != end_; ++i) {
    if (overlap(pieces_[i], region)) detach_piece(pieces_[i]);
  }
}

void tx_batch::detach_all() {
  const const_bytes own{scratch_};
  for (std::size_t i = first_; i != end_; ++i) {
    if (!overlap(pieces_[i], own)) detach_piece(pieces_[i]);
  }
}

void tx_batch::clear() noexcept {
  first_ = end_ = size_ = scratch_used_ = 0;
  detached_.clear();
}

std::unique_ptr<tx_batch> tx_batch_pool::take() {
  std::unique_ptr<tx_batch> batch;
  if (spare_.empty()) {
    spare_.reserve(most_spares);  // here, so that give_back() never allocates
    batch = std::make_unique<tx_batch>();
  } else {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  batch->lent_next_ = lent_;
  batch->lent_link_ = &lent_;
  if (lent_ != nullptr) lent_->lent_link_ = &batch->lent_next_;
  lent_ = batch.get();
  return batch;
}

void tx_batch::leave_list() noexcept {
  if (lent_link_ == nullptr) return;
  *lent_link_ = lent_next_;
  if (lent_next_ != nullptr) lent_next_->lent_link_ = lent_link_;
  lent_link_ = nullptr;
  lent_next_ = nullptr;
}

tx_batch_pool::~tx_batch_pool() {
  while (lent_ != nullptr) lent_->leave_list();
}

void tx_batch_pool::give_back(std::unique_ptr<tx_batch> batch) noexcept {
  if (batch == nullptr) return;
  batch->leave_list();
  if (spare_.size() == most_spares) return;
  batch->clear();
  spare_.push_back(std::move(batch));
}

void tx_batch_pool::detach(const_bytes region) {
  for (tx_batch* batch = lent_; batch != nullptr; batch = batch->lent_next_) batch->detach(region);
}

}  // namespace iwarp::mpa
