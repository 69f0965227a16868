#include "mpa/tx_batch.hpp"

#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::drain;
using test::octets;
using test::random_source;

octets content(const tx_batch& batch) {
  octets out;
  for (const gather_piece& p : batch.pieces()) test::append(out, as_const_bytes(p.data, p.size));
  return out;
}

TEST(TxBatch, IsEmptyAtFirst) {
  const tx_batch batch;
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.size(), 0u);
  EXPECT_TRUE(batch.pieces().empty());
}

TEST(TxBatch, CopiesInARowAreOnePiece) {
  tx_batch batch;
  const octets a = counting(10), b = counting(20, 10);
  const mutable_bytes where = batch.append_copy(a);
  EXPECT_EQ(octets(where.begin(), where.end()), a);
  batch.append_copy(b);
  batch.append_copy({});
  EXPECT_EQ(batch.pieces().size(), 1u);
  EXPECT_EQ(batch.size(), 30u);
  EXPECT_EQ(content(batch), counting(30));
}

TEST(TxBatch, CopiesJoinAlsoBehindAPartlySentPiece) {
  tx_batch batch;
  batch.append_copy(counting(10));
  batch.advance(7);
  batch.append_copy(counting(5, 10));
  EXPECT_EQ(batch.pieces().size(), 1u);
  EXPECT_EQ(content(batch), counting(8, 7));
}

TEST(TxBatch, ReferencesStayWhereTheyAre) {
  tx_batch batch;
  const octets large = counting(3000);
  batch.append_copy(counting(4));
  batch.append_reference(large);
  batch.append_reference({});
  batch.append_copy(counting(4, 9));
  ASSERT_EQ(batch.pieces().size(), 3u);
  EXPECT_EQ(batch.pieces()[1].data, large.data());
  EXPECT_EQ(batch.pieces()[1].size, 3000u);
}

TEST(TxBatch, AdvancesByAnyAmountWithoutLosingAnOctet) {
  const octets large = counting(3000, 77), other = counting(700, 5);
  octets all = counting(30);
  test::append(all, large);
  test::append(all, counting(12));
  test::append(all, other);
  random_source random(3);
  for (int round = 0; round < 200; ++round) {
    tx_batch batch;
    batch.append_copy(counting(30));
    batch.append_reference(large);
    batch.append_copy(counting(12));
    batch.append_reference(other);
    std::size_t sent = 0;
    while (!batch.empty()) {
      ASSERT_EQ(batch.size(), all.size() - sent);
      ASSERT_EQ(content(batch), octets(all.begin() + static_cast<std::ptrdiff_t>(sent), all.end()));
      for (const gather_piece& p : batch.pieces()) ASSERT_NE(p.size, 0u);
      const std::size_t n = std::min(batch.size(), random.below(round % 2 == 0 ? 9 * 100 : 60));
      batch.advance(n);
      sent += n;
    }
    EXPECT_EQ(sent, all.size());
    EXPECT_TRUE(batch.pieces().empty());
  }
}

TEST(TxBatch, AnEmptiedBatchHasAllItsRoomAgain) {
  tx_batch batch;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(batch.has_room(tx_batch::scratch_size - 2000, 0)) << i;
    batch.append_copy(octets(40000));
    batch.advance(batch.size());
  }
}

TEST(TxBatch, HasRoomIsExactEnough) {
  tx_batch batch;
  EXPECT_TRUE(batch.has_room(64768, 1));
  EXPECT_TRUE(batch.has_room(65535, 1));
  EXPECT_TRUE(batch.has_room(64768, 750));
  EXPECT_TRUE(batch.has_room(1, 0));
  EXPECT_FALSE(batch.has_room(tx_batch::scratch_size, 0)) << "all header: all copied";
  EXPECT_FALSE(batch.has_room(64768, 1024)) << "more pieces than one call to the kernel takes";
  // Small FPDUs, all copied: the scratch is used up to a small rest.
  while (batch.has_room(84, 1)) batch.append_copy(octets(92));
  EXPECT_GT(batch.size(), tx_batch::scratch_size - 200);
}

TEST(TxBatch, DetachReplacesReferencesIntoARegionAlone) {
  tx_batch batch;
  octets going = counting(5000), staying = counting(5000, 1);
  const octets first(going.begin(), going.begin() + 2000);
  const octets second(going.begin() + 3000, going.end());
  batch.append_copy(counting(8));
  batch.append_reference(const_bytes{going}.first(2000));
  batch.append_reference(staying);
  batch.append_reference(const_bytes{going}.subspan(3000));
  const octets before = content(batch);
  batch.advance(100);  // inside the first reference
  batch.detach(going);
  std::ranges::fill(going, std::byte{0xFF});
  EXPECT_EQ(content(batch), octets(before.begin() + 100, before.end()));
  EXPECT_EQ(batch.pieces()[1].data, staying.data()) << "what lies elsewhere stays by reference";
  // Detaching again, or a neighbouring region, changes nothing.
  const void* const copy = batch.pieces()[0].data;
  batch.detach(going);
  batch.detach(const_bytes{staying}.first(0));
  EXPECT_EQ(batch.pieces()[0].data, copy);
  EXPECT_EQ(batch.pieces()[1].data, staying.data());
  batch.advance(batch.size());
  EXPECT_TRUE(batch.empty());
}

TEST(TxBatch, DetachTakesARegionThatOnlyTouchesAPiece) {
  tx_batch batch;
  octets memory = counting(3000);
  batch.append_reference(const_bytes{memory}.subspan(1000, 1000));
  batch.detach(const_bytes{memory}.first(1000));
  EXPECT_EQ(batch.pieces()[0].data, memory.data() + 1000) << "ends where the piece begins";
  batch.detach(const_bytes{memory}.subspan(2000));
  EXPECT_EQ(batch.pieces()[0].data, memory.data() + 1000) << "begins where the piece ends";
  batch.detach(const_bytes{memory}.subspan(1999, 1));
  EXPECT_NE(batch.pieces()[0].data, memory.data() + 1000);
  EXPECT_EQ(drain(batch), octets(memory.begin() + 1000, memory.begin() + 2000));
}

TEST(TxBatch, ClearDropsEverything) {
  tx_batch batch;
  batch.append_copy(counting(8));
  batch.clear();
  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(batch.pieces().empty());
}

TEST(TxBatchPool, LendsTheSameBatchAgainAndEmpty) {
  tx_batch_pool pool;
  auto batch = pool.take();
  tx_batch* const address = batch.get();
  batch->append_copy(counting(8));
  pool.give_back(std::move(batch));
  batch = pool.take();
  EXPECT_EQ(batch.get(), address);
  EXPECT_TRUE(batch->empty());
  auto second = pool.take();
  EXPECT_NE(second.get(), address);
  pool.give_back(nullptr);
}

}  // namespace
}  // namespace iwarp::mpa
