#include "tests/verbs/support/guarded_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace iwarp::verbs_test {

namespace {

constexpr std::byte canary{0xC7};

std::size_t page() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

constexpr std::byte octet(std::uint64_t seed, std::size_t at) noexcept {
  return static_cast<std::byte>((seed * 0x9E37u + at * 31u + (at >> 8) * 7u) & 0xFF);
}

}  // namespace

guarded_memory::guarded_memory(std::size_t size) {
  const std::size_t usable = std::max<std::size_t>((size + page() - 1) / page() * page(), page());
  map_size_ = usable + 2 * page();
  void* const map = ::mmap(nullptr, map_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  map_ = static_cast<std::byte*>(map);
  bytes_ = {map_ + page() + usable - size, size};
  allow();
  std::fill(map_ + page(), bytes_.data(), canary);
}

guarded_memory::~guarded_memory() {
  if (map_ != nullptr) ::munmap(map_, map_size_);
}

bool guarded_memory::intact() const noexcept {
  return all_are({map_ + page(), static_cast<std::size_t>(bytes_.data() - map_) - page()}, canary);
}

void guarded_memory::forbid() noexcept { ::mprotect(map_ + page(), map_size_ - 2 * page(), PROT_NONE); }
void guarded_memory::make_read_only() noexcept { ::mprotect(map_ + page(), map_size_ - 2 * page(), PROT_READ); }
void guarded_memory::allow() noexcept { ::mprotect(map_ + page(), map_size_ - 2 * page(), PROT_READ | PROT_WRITE); }

void fill(mutable_bytes out, std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = octet(seed, i);
}

std::size_t matching(const_bytes in, std::uint64_t seed) noexcept {
  std::size_t at = 0;
  while (at < in.size() && in[at] == octet(seed, at)) ++at;
  return at;
}

bool all_are(const_bytes in, std::byte value) noexcept {
  return std::all_of(in.begin(), in.end(), [value](std::byte b) { return b == value; });
}

}  // namespace iwarp::verbs_test
