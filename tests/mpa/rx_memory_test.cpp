#include "mpa/rx_memory.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace iwarp::mpa {
namespace {

TEST(RxMemory, StagingHoldsTheLargestFpduAndAFullRead) {
  rx_memory memory;
  EXPECT_EQ(memory.staging().size(), rx_memory::staging_size);
  // 65535 octets of ULPDU, length, PAD, CRC and the most markers that can run through and in front of it.
  const std::size_t plain = (2 + 65535 + 3) / 4 * 4 + 4;
  EXPECT_GE(rx_memory::max_fpdu, plain + 4 * (1 + (plain + 507) / 508));
  EXPECT_GE(rx_memory::staging_size, rx_memory::max_fpdu + rx_memory::read_size);
}

TEST(RxMemory, ReusesSmallBuffers) {
  rx_memory memory;
  rx_memory::carry first = memory.take(1);
  std::byte* const address = first.data.get();
  EXPECT_EQ(first.capacity, rx_memory::small_carry_size);
  memory.give_back(std::move(first));
  EXPECT_EQ(first.capacity, 0u);  // NOLINT(bugprone-use-after-move): emptied, as documented by its default state
  EXPECT_EQ(memory.take(rx_memory::small_carry_size).data.get(), address);
}

TEST(RxMemory, LargeBuffersAreExactAndNotKept) {
  rx_memory memory;
  rx_memory::carry large = memory.take(rx_memory::staging_size);
  EXPECT_EQ(large.capacity, rx_memory::staging_size);
  memory.give_back(std::move(large));
  EXPECT_EQ(memory.take(1).capacity, rx_memory::small_carry_size);
}

TEST(RxMemory, GivingBackNothingIsHarmless) {
  rx_memory memory;
  memory.give_back({});
  EXPECT_NE(memory.take(10).data, nullptr);
}

TEST(RxMemory, KeepsABoundedNumberOfSpares) {
  rx_memory memory;
  std::vector<rx_memory::carry> all;
  for (int i = 0; i < 200; ++i) all.push_back(memory.take(100));
  std::set<std::byte*> before;
  for (auto& c : all) before.insert(c.data.get());
  EXPECT_EQ(before.size(), 200u) << "each buffer has one owner";
  for (auto& c : all) memory.give_back(std::move(c));
  for (auto& c : all) c = memory.take(100);
  std::set<std::byte*> after;
  for (auto& c : all) after.insert(c.data.get());
  EXPECT_EQ(after.size(), 200u);
}

}  // namespace
}  // namespace iwarp::mpa
