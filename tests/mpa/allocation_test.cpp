// The data path allocates nothing once buffers have been lent for the first time.
#include "mpa/fpdu_rx.hpp"
#include "mpa/fpdu_tx.hpp"
#include "tests/mpa/counted_new.hpp"
#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace iwarp::mpa {
namespace {

class counting_sink final : public ulpdu_sink {
 public:
  result<ulpdu_answer> on_ulpdu(const ulpdu& unit) noexcept override {
    if (hold_next) {
      hold_next = false;
      return ulpdu_answer::held;
    }
    hold_next = ++units % 3 == 0;
    octets += unit.size();
    return ulpdu_answer::taken;
  }
  bool hold_next = false;
  std::size_t units = 0, octets = 0;
};

/// One stream through `count` connections of a domain, cut so that each read leaves something unfinished.
TEST(Allocation, ReceivingTakesItsBuffersFromThePool) {
  test::slow_stream s(true, true);
  for (std::size_t i = 0; i < 40; ++i) s.add(test::counting(100 + 37 * i));
  rx_memory memory;
  counting_sink sink;
  std::vector<std::unique_ptr<fpdu_rx>> connections;
  for (int i = 0; i < 8; ++i) {
    connections.push_back(std::make_unique<fpdu_rx>(memory, sink));
    connections.back()->start(true, true);
  }
  std::size_t before = 0;
  for (int round = 0; round < 3; ++round) {
    if (round == 1) before = test::allocations();
    for (auto& c : connections) c->start(true, true);
    for (std::size_t at = 0; at < s.wire.size();) {
      const const_bytes piece = const_bytes{s.wire}.subspan(at, std::min<std::size_t>(333, s.wire.size() - at));
      for (auto& c : connections) {
        std::size_t done = 0;
        while (done < piece.size()) {
          const auto taken = c->consume(piece.subspan(done));
          if (!taken) FAIL() << taken.error().message();
          done += *taken;
          while (*c->resume() == fpdu_rx::status::held) {
          }
          c->park();
        }
      }
      at += piece.size();
    }
  }
  EXPECT_EQ(test::allocations(), before) << "the second and third round lend what the first gave back";
  EXPECT_EQ(sink.units, 3u * 8 * 40);
}

TEST(Allocation, FramingTakesNothing) {
  tx_batch_pool pool;
  const std::vector<std::byte> payload = test::counting(3000);
  const std::array<const_bytes, 2> pieces = {const_bytes{payload}.first(100), const_bytes{payload}};
  fpdu_tx tx;
  tx.start(true, true);
  pool.give_back(pool.take());
  const std::size_t before = test::allocations();
  for (int i = 0; i < 1000; ++i) {
    auto batch = pool.take();
    while (batch->has_room(3118, 2)) tx.frame(*batch, const_bytes{payload}.first(18), pieces);
    while (!batch->empty()) batch->advance(std::min<std::size_t>(batch->size(), 7001));
    pool.give_back(std::move(batch));
  }
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace iwarp::mpa
