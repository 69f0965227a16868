#include "mpa/rx_memory.hpp"

#include <cassert>
#include <utility>

namespace iwarp::mpa {
namespace {

/// Spare buffers kept: about 4 MiB, enough for this many connections to be inside an FPDU at the same time.
constexpr std::size_t most_spares = 64;

}  // namespace

rx_memory::rx_memory() : staging_(new std::byte[staging_size]) { free_.reserve(most_spares); }

rx_memory::~rx_memory() = default;

mutable_bytes rx_memory::staging() noexcept { return {staging_.get(), staging_size}; }

rx_memory::carry rx_memory::take(std::size_t size) {
  assert(size <= staging_size);
  if (size > small_carry_size) return {std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  if (free_.empty()) return {std::unique_ptr<std::byte[]>(new std::byte[small_carry_size]), small_carry_size};
  carry spare = std::move(free_.back());
  free_.pop_back();
  return spare;
}

void rx_memory::give_back(carry&& c) noexcept {
  carry mine = std::exchange(c, carry{});
  if (mine.data == nullptr || mine.capacity != small_carry_size || free_.size() == most_spares) return;
  free_.push_back(std::move(mine));  // room was reserved: does not allocate
}

}  // namespace iwarp::mpa
