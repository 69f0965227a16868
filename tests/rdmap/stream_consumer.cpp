#include "tests/rdmap/stream_consumer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace iwarp::stream_test {

using rdmap::access_error;
using rdmap::access_result;

namespace {
constexpr std::byte guard_octet{0xA5};
}

region::region(std::size_t size, stag key_of, region_rights rights_of, std::uint64_t base_of)
    : key(key_of), rights(rights_of), base(base_of), size_(size), storage_(size + 2 * guard_size, guard_octet) {
  std::ranges::fill(bytes(), std::byte{0});
  if (base == 0) base = reinterpret_cast<std::uintptr_t>(data());
}

bool region::guards_intact() const {
  const auto is_guard = [](std::byte b) { return b == guard_octet; };
  return std::all_of(storage_.begin(), storage_.begin() + guard_size, is_guard) &&
         std::all_of(storage_.end() - guard_size, storage_.end(), is_guard);
}

test_consumer::test_consumer() {
  constexpr std::size_t plenty = 1 << 12;  // so that the ledger never allocates while allocations are counted
  sends.reserve(plenty);
  receives.reserve(plenty);
  queue_.reserve(plenty);
}

test_consumer::~test_consumer() {
  EXPECT_TRUE(guards_intact());
  EXPECT_EQ(pins(), 0) << "memory is still pinned";
  EXPECT_EQ(receives.size(), taken_) << "each receive taken completes exactly once";
}

region& test_consumer::add(std::size_t size, region_rights rights, std::uint32_t key, std::uint64_t base) {
  const stag name = key != 0 ? stag{key} : stag::make(next_index_++, 0x5A);
  regions_.push_back(std::make_unique<region>(size, name, rights, base));
  return *regions_.back();
}

bool test_consumer::guards_intact() const {
  return std::ranges::all_of(regions_, [](const auto& r) { return r->guards_intact(); });
}

int test_consumer::pins() const {
  return std::accumulate(regions_.begin(), regions_.end(), 0, [](int n, const auto& r) { return n + r->pins; });
}

std::uint64_t test_consumer::post_receive(std::vector<rdmap::sge> elements) {
  auto entry = std::make_unique<posted_receive>();
  entry->elements = std::move(elements);
  entry->slot.id = posted_.size();
  entry->slot.elements = entry->elements;
  for (const auto& element : entry->elements) entry->slot.size += element.length;
  posted_.push_back(std::move(entry));
  queue_.push_back(posted_.size() - 1);
  return posted_.size() - 1;
}

void test_consumer::repost(std::uint64_t id) noexcept { queue_.push_back(id); }

region* test_consumer::find(stag key) noexcept {
  const auto at =
      std::ranges::find_if(regions_, [&](const auto& r) { return r->key.index() == key.index() && key.index() != 0; });
  return at == regions_.end() || (*at)->key != key ? nullptr : at->get();
}

access_result test_consumer::access_remote(stag key, std::uint64_t offset, std::size_t size,
                                           rdmap::remote_right right) noexcept {
  EXPECT_NE(size, 0u) << "zero-length access touches no memory";
  region* r = find(key);
  if (r == nullptr || !r->valid) return {.error = access_error::invalid_stag};
  if (r->rights.domain != 1) return {.error = access_error::not_associated};
  const bool allowed =
      right == rdmap::remote_right::write ? r->rights.remote_write : r->rights.remote_read && remote_read_enabled;
  if (!allowed) return {.error = access_error::no_right};
  if (offset + size < offset) return {.error = access_error::wraps};
  if (offset < r->base || offset - r->base > r->size() || size > r->size() - (offset - r->base)) {
    return {.error = access_error::out_of_bounds};
  }
  ++r->pins;
  return {.bytes = r->bytes().subspan(static_cast<std::size_t>(offset - r->base), size), .pin = r};
}

access_result test_consumer::access_local(stag key, void* address, std::size_t size, bool write) noexcept {
  EXPECT_NE(size, 0u);
  region* r = find(key);
  if (r == nullptr || !r->valid) return {.error = access_error::invalid_stag};
  if (r->rights.domain != 1) return {.error = access_error::not_associated};
  if (write && !r->rights.local_write) return {.error = access_error::no_right};
  auto* begin = static_cast<std::byte*>(address);
  if (begin < r->data() || begin > r->data() + r->size() ||
      size > static_cast<std::size_t>(r->data() + r->size() - begin)) {
    return {.error = access_error::out_of_bounds};
  }
  ++r->pins;
  return {.bytes = {begin, size}, .pin = r};
}

void test_consumer::release(void* pin) noexcept {
  auto* r = static_cast<region*>(pin);
  EXPECT_GT(r->pins, 0);
  --r->pins;
}

access_error test_consumer::invalidate_remote(stag key) noexcept {
  region* r = find(key);
  if (key.index() == 0) return access_error::cannot_invalidate;
  if (r == nullptr) return access_error::invalid_stag;
  if (r->rights.domain != 1) return access_error::not_associated;
  if (!r->rights.remote_read && !r->rights.remote_write) return access_error::no_right;
  if (!r->rights.invalidatable) return access_error::cannot_invalidate;
  r->valid = false;
  return access_error::none;
}

access_error test_consumer::invalidate_local(stag key) noexcept {
  region* r = find(key);
  if (r == nullptr) return access_error::invalid_stag;
  r->valid = false;
  return access_error::none;
}

rdmap::receive_slot* test_consumer::take_receive() noexcept {
  if (taken_ == queue_.size()) return nullptr;
  return &posted_[queue_[taken_++]]->slot;
}

void test_consumer::send_completed(const rdmap::work_request& request, rdmap::wr_status status) noexcept {
  EXPECT_EQ(request.id, sends.size()) << "requests complete in order, each once";
  sends.push_back(status);
}

void test_consumer::receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& result) noexcept {
  ASSERT_LT(receives.size(), taken_) << "a receive completed that was not taken";
  EXPECT_EQ(slot.id, queue_[receives.size()]) << "receives complete in the order they were taken";
  receives.push_back({slot.id, result});
}

}  // namespace iwarp::stream_test
