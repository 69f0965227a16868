// What one side frames the other side hands up: fpdu_tx into fpdu_rx, over a gather list sent in odd amounts.
#include "mpa/fpdu_rx.hpp"
#include "mpa/fpdu_tx.hpp"
#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::delivery;
using test::noting_sink;
using test::octets;
using test::random_source;

class RoundTrip : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  RoundTrip() {
    tx.start(std::get<0>(GetParam()), std::get<1>(GetParam()));
    rx.start(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }

  void frame(const octets& header, const std::vector<const_bytes>& pieces) {
    octets ulpdu = header;
    for (const const_bytes p : pieces) test::append(ulpdu, p);
    const bool lead = tx.markers() && tx.position() % 512 == 0;
    expected.push_back({ulpdu, tx.position() + (lead ? 4 : 0)});
    tx.frame(batch, header, pieces);
  }

  /// TCP takes everything, at most `step` octets at a time.
  void transfer(std::size_t step) {
    while (!batch.empty()) {
      const gather_piece first = batch.pieces().front();
      const std::size_t n = std::min(step, first.size);
      ASSERT_EQ(rx.consume(as_const_bytes(first.data, n)), n);
      batch.advance(n);
    }
  }

  tx_batch batch;
  fpdu_tx tx;
  rx_memory memory;
  noting_sink sink;
  fpdu_rx rx{memory, sink};
  std::vector<delivery> expected;
};

// MPA-06 MPA-07 MPA-10 MPA-20 MPA-22 MPA-28
TEST_P(RoundTrip, EverySizeFrom1To2000) {
  const octets memory_to_send = counting(2000, 9);
  for (std::size_t size = 1; size <= 2000; ++size) {
    const std::size_t header = std::min<std::size_t>(size, 18);
    ASSERT_TRUE(batch.has_room(size, 1));
    frame(octets(memory_to_send.begin(), memory_to_send.begin() + static_cast<std::ptrdiff_t>(header)),
          {const_bytes{memory_to_send}.subspan(header, size - header)});
    if (size % 7 == 0 || size == 2000) transfer(4099);
  }
  EXPECT_TRUE(sink.got == expected);
  EXPECT_FALSE(rx.mid_fpdu());
  EXPECT_EQ(rx.counters().octets, tx.position());
}

// MPA-06 MPA-23
TEST_P(RoundTrip, TheLargestUlpdu) {
  const octets large = counting(64768 - 14);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(batch.has_room(64768, 1));
    frame(counting(14, i), {large});
    transfer(i == 0 ? 1000 : 1000000);
    frame(counting(14 + 4 * i), {});  // another phase for the next
  }
  transfer(1000000);
  EXPECT_TRUE(sink.got == expected);
}

TEST_P(RoundTrip, PayloadInSeveralPieces) {
  random_source random(8);
  const octets memory_to_send = random.octets(8000);
  for (int i = 0; i < 400; ++i) {
    std::vector<const_bytes> pieces;
    for (std::size_t k = random.below(6); k > 0; --k) {
      pieces.push_back(
          const_bytes{memory_to_send}.subspan(random.below(2000), random.below(random.chance(50) ? 20 : 3000)));
    }
    std::size_t size = 18;
    for (const const_bytes p : pieces) size += p.size();
    if (!batch.has_room(size, pieces.size())) transfer(random.between(1, 5000));
    ASSERT_TRUE(batch.has_room(size, pieces.size()));
    frame(counting(18, static_cast<std::size_t>(i)), pieces);
  }
  transfer(3001);
  EXPECT_TRUE(sink.got == expected);
}

INSTANTIATE_TEST_SUITE_P(Modes, RoundTrip, testing::Combine(testing::Bool(), testing::Bool()), [](const auto& p) {
  return std::string(std::get<0>(p.param) ? "Crc" : "NoCrc") + (std::get<1>(p.param) ? "Markers" : "Plain");
});

}  // namespace
}  // namespace iwarp::mpa
