#include "tests/interop/matrix/layout.hpp"

#include <algorithm>
#include <cstring>

namespace iwarp::interop {
namespace {

constexpr std::uint64_t gap = 3;
constexpr std::byte poison_octet{0xA5};

/// Octets [at, at + 8) of the message of `seed`, `at` a multiple of 8.
std::uint64_t word(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = (seed << 32) ^ (at * 0x9E3779B97F4A7C15u) ^ 0x2545F4914F6CDD1Du;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

/// Calls what(memory, expected, octets) for runs of at most 8 octets of a piece until it says false.
template <class What>
bool for_each_run(mutable_bytes memory, std::uint64_t message_at, std::uint64_t seed, What what) {
  std::size_t done = 0;
  while (done < memory.size()) {
    const std::uint64_t at = message_at + done;
    const std::uint64_t whole = word(seed, at & ~std::uint64_t{7});
    const std::size_t skip = at & 7;
    const std::size_t n = std::min<std::size_t>(8 - skip, memory.size() - done);
    if (!what(memory.data() + done, reinterpret_cast<const std::byte*>(&whole) + skip, n)) return false;
    done += n;
  }
  return true;
}

}  // namespace

std::vector<piece> pieces_of(const layout& where, std::uint32_t index) {
  std::vector<piece> all;
  const std::uint64_t shares = std::uint64_t{where.pieces} * (where.pieces + 1) / 2;
  std::uint64_t at = where.at + index * where.stride;
  std::uint32_t left = where.size;
  for (std::uint32_t i = 0; i < where.pieces; ++i) {
    const bool last = i + 1 == where.pieces;
    const auto length = last ? left : static_cast<std::uint32_t>(where.size * std::uint64_t{i + 1} / shares);
    all.push_back({at, length});
    at += length + gap;
    left -= length;
  }
  return all;
}

std::uint64_t span_of(const layout& where) { return (where.count - 1) * where.stride + stride_for(where.size); }

std::uint64_t stride_for(std::uint32_t size) { return (size + std::uint64_t{7} + 6 * gap) / 8 * 8 + 17; }

void fill(mutable_bytes memory, const layout& where, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < where.count; ++i) {
    std::uint64_t message_at = 0;
    for (const piece& p : pieces_of(where, i)) {
      for_each_run(memory.subspan(p.at, p.length), message_at, seed + i,
                   [](std::byte* to, const std::byte* from, auto n) {
                     std::memcpy(to, from, n);
                     return true;
                   });
      message_at += p.length;
    }
  }
}

void poison(mutable_bytes memory, std::uint64_t at, std::uint64_t length) {
  std::ranges::fill(memory.subspan(at, length), poison_octet);
}

std::string verify(mutable_bytes memory, const layout& where, std::uint64_t seed, std::uint64_t poisoned_at,
                   std::uint64_t poisoned_length) {
  for (std::uint32_t i = 0; i < where.count; ++i) {
    std::uint64_t message_at = 0;
    for (const piece& p : pieces_of(where, i)) {
      const mutable_bytes octets = memory.subspan(p.at, p.length);
      const bool same = for_each_run(
          octets, message_at, seed + i,
          [](const std::byte* got, const std::byte* want, auto n) { return std::memcmp(got, want, n) == 0; });
      if (!same) {
        return "message " + std::to_string(i) + " differs between its octets " + std::to_string(message_at) + " and " +
               std::to_string(message_at + p.length);
      }
      poison(memory, p.at, p.length);
      message_at += p.length;
    }
  }
  const mutable_bytes around = memory.subspan(poisoned_at, poisoned_length);
  const auto changed = std::ranges::find_if(around, [](std::byte b) { return b != poison_octet; });
  if (changed == around.end()) return {};
  return "octet " + std::to_string(changed - around.begin()) +
         " of the guarded memory, outside of every message, was written";
}

}  // namespace iwarp::interop
