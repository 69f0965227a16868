#include "base/place.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace iwarp {
namespace {

TEST(Place, CopiesEveryLengthExactly) {
  std::vector<std::byte> from(700), to(702);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t size = 0; size <= from.size(); ++size) {
    std::ranges::fill(to, std::byte{0xEE});
    place(to.data() + 1, from.data(), size);
    ASSERT_TRUE(std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size), to.begin() + 1)) << size;
    ASSERT_EQ(to[0], std::byte{0xEE}) << size;
    ASSERT_EQ(to[size + 1], std::byte{0xEE}) << size;
  }
}

// A program that watches the last octet of a message, and writes there as soon as it has changed, keeps what it wrote.
// With memcpy() some of these lengths fail within some hundred messages, which ones depends on the processor.
TEST(Place, WhoWatchesTheLastOctetMayWriteThere) {
  static constexpr int messages = 500;
  for (const std::size_t size : {1U, 3U, 8U, 33U, 63U, 64U, 65U, 100U, 127U, 128U, 1448U}) {
    std::vector<std::byte> memory(size), from(size);
    auto& last = reinterpret_cast<std::atomic<std::uint8_t>&>(memory.back());
    std::atomic<int> placed{0}, answered{0};
    std::thread watcher([&] {
      for (int i = 1; i <= messages; ++i) {
        while (last.load(std::memory_order_acquire) != 1) {
        }
        last.store(2, std::memory_order_release);
        answered.store(i);
      }
    });
    int undone = 0;
    from.back() = std::byte{1};
    for (int i = 1; i <= messages; ++i) {
      place(memory.data(), from.data(), size);
      while (answered.load() < i) std::this_thread::yield();
      if (last.load() != 2) ++undone;
      last.store(0);
    }
    while (answered.load() < messages) last.store(1);  // a watcher that saw one message twice is through already
    watcher.join();
    EXPECT_EQ(undone, 0) << size;
  }
}

}  // namespace
}  // namespace iwarp
