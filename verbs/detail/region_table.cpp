#include "verbs/detail/region_table.hpp"

#include <openssl/rand.h>

#include <array>
#include <cassert>
#include <thread>
#include <utility>

#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

namespace {

constexpr std::size_t first_size = 256;
constexpr std::size_t max_regions = std::size_t{1} << 22;  // a quarter of the index space: STags stay sparse
constexpr std::uint32_t removed_index = 0xFFFFFFFF;        // no 24-bit index

std::uint32_t random_word() noexcept {
  std::array<unsigned char, 4> octets{};
  if (RAND_bytes(octets.data(), static_cast<int>(octets.size())) != 1) return 0;
  return load_be<std::uint32_t>(std::as_bytes(std::span{octets}));
}

}  // namespace

region_table::region_table(bool several_domains)
    : several_domains_(several_domains), owned_(std::make_unique<table>(first_size)) {
  current_.store(owned_.get());
}

region_table::slot* region_table::find_slot(table& t, std::uint32_t index) noexcept {
  for (std::size_t at = hash(index) & t.mask;; at = (at + 1) & t.mask) {
    const std::uint32_t there = t.slots[at].index.load(std::memory_order_acquire);
    if (there == index) return &t.slots[at];
    if (there == 0) return nullptr;  // a table always has free slots
  }
}

void region_table::put(table& t, std::uint32_t index, region* r) noexcept {
  for (std::size_t at = hash(index) & t.mask;; at = (at + 1) & t.mask) {
    slot& s = t.slots[at];
    const std::uint32_t there = s.index.load();
    if (there != 0 && there != removed_index) continue;
    if (there == 0) ++used_;
    s.where.store(r);
    s.index.store(index, std::memory_order_release);
    return;
  }
}

void region_table::grow() {
  const std::size_t size = live_ * 4 > owned_->slots.size() ? owned_->slots.size() * 2 : owned_->slots.size();
  auto bigger = std::make_unique<table>(size);
  used_ = 0;
  for (const slot& s : owned_->slots) {
    const std::uint32_t index = s.index.load();
    if (index != 0 && index != removed_index) put(*bigger, index, s.where.load());
  }
  current_.store(bigger.get());
  retired_.push_back(std::move(owned_));
  owned_ = std::move(bigger);
}

region_table::retired_tables region_table::take_retired() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(retired_, {});
}

result<region*> region_table::insert(mutable_bytes memory, access rights, const protection_domain_state* pd) {
  const std::lock_guard lock(mutex_);
  if (live_ == max_regions) return fail(errc::too_many);
  if ((used_ + 1) * 2 > owned_->slots.size()) grow();
  std::uint32_t key = 0;
  for (int tries = 0; tries < 1000; ++tries) {  // at most a quarter of the indices is taken
    key = random_word();
    if (key >> 8 != 0 && find_slot(*owned_, key >> 8) == nullptr) break;
    key = 0;
  }
  if (key == 0) return fail(errc::invalid_argument);
  if (free_.empty()) {
    objects_.emplace_back();
    free_.push_back(&objects_.back());
  }
  region& r = *free_.back();
  free_.pop_back();
  r.address = memory.data();
  r.length = memory.size();
  r.rights = rights;
  r.pd = pd;
  r.valid.store(true);
  r.key.store(key);
  put(*owned_, key >> 8, &r);
  ++live_;
  return &r;
}

void region_table::remove(region& r) noexcept {
  const std::lock_guard lock(mutex_);
  slot* s = find_slot(*owned_, r.key.load() >> 8);
  assert(s != nullptr);
  r.valid.store(false);
  r.key.store(0);
  s->index.store(removed_index);
  --live_;
  // A removed slot in front of a free one ends no chain: it is free as well.
  for (std::size_t at = static_cast<std::size_t>(s - owned_->slots.data());; at = (at - 1) & owned_->mask) {
    if (owned_->slots[at].index.load() != removed_index || owned_->slots[(at + 1) & owned_->mask].index.load() != 0) {
      break;
    }
    owned_->slots[at].index.store(0);
    --used_;
  }
  drain(r);
}

void region_table::recycle(region& r) {
  const std::lock_guard lock(mutex_);
  free_.push_back(&r);
}

result<stag> region_table::revalidate(region& r) {
  const std::lock_guard lock(mutex_);
  if (r.valid.load()) return fail(errc::wrong_state);
  const std::uint32_t old = r.key.load();
  std::uint32_t fresh = (old & 0xFFFFFF00) | (random_word() & 0xFF);
  if (fresh == old) fresh = (old & 0xFFFFFF00) | ((old + 1) & 0xFF);
  r.key.store(fresh);
  // Whoever found it under the old key has still to look whether it is valid: it must not become so under his eyes.
  drain(r);
  r.valid.store(true);
  return stag{fresh};
}

region* region_table::pin(stag key) noexcept {
  if (key.index() == 0) return nullptr;
  slot* s = find_slot(*current_.load(std::memory_order_acquire), key.index());
  if (s == nullptr) return nullptr;
  region* r = s->where.load(std::memory_order_acquire);
  if (several_domains_) r->pins.fetch_add(1);
  if (r->key.load() == key.value) return r;  // else it was removed, or the 8-bit key is wrong
  unpin(*r);
  return nullptr;
}

void region_table::drain(const region& r, std::uint32_t own_pins) noexcept {
  while (r.pins.load() > own_pins) std::this_thread::yield();
}

rdmap::access_result region_table::check_remote(region& r, const protection_domain_state* pd, access right,
                                                std::uint64_t offset, std::size_t size) noexcept {
  using rdmap::access_error;
  if (!r.valid.load()) return {.error = access_error::invalid_stag};
  if (r.pd != pd) return {.error = access_error::not_associated};
  if (!has(r.rights, right)) return {.error = access_error::no_right};
  if (offset + size < offset) return {.error = access_error::wraps};
  const std::uint64_t base = has(r.rights, access::zero_based) ? 0 : reinterpret_cast<std::uintptr_t>(r.address);
  if (offset < base) return {.error = access_error::out_of_bounds};
  const std::uint64_t at = offset - base;
  if (at > r.length || size > r.length - at) return {.error = access_error::out_of_bounds};
  return {.bytes = {r.address + at, size}, .pin = &r};
}

rdmap::access_result region_table::check_local(region& r, const protection_domain_state* pd, const void* address,
                                               std::size_t size, bool write) noexcept {
  using rdmap::access_error;
  if (!r.valid.load()) return {.error = access_error::invalid_stag};
  if (r.pd != pd) return {.error = access_error::not_associated};
  if (write && !has(r.rights, access::local_write)) return {.error = access_error::no_right};
  const auto where = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(r.address);
  if (where < base || where - base > r.length || size > r.length - (where - base)) {
    return {.error = access_error::out_of_bounds};
  }
  return {.bytes = {r.address + (where - base), size}, .pin = &r};
}

}  // namespace iwarp::verbs::detail
