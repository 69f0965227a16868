#include "mpa/fpdu_tx.hpp"

#include "tests/mpa/streams.hpp"
#include "tests/mpa/vectors.hpp"

#include <gtest/gtest.h>

#include <array>

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::counting;
using test::drain;
using test::from_hex;
using test::octets;
using test::random_source;
using test::slow_stream;
using test::to_hex;

octets framed(fpdu_tx& tx, const octets& header, std::vector<octets> payload = {}) {
  tx_batch batch;
  const std::vector<const_bytes> pieces(payload.begin(), payload.end());
  tx.frame(batch, header, pieces);
  return drain(batch);
}

class FpduVectorsTx : public testing::TestWithParam<test::fpdu_vector> {};

// MPA-01 MPA-10 MPA-11 MPA-13 MPA-29
TEST_P(FpduVectorsTx, AreFramedOctetByOctet) {
  const test::fpdu_vector& v = GetParam();
  const octets wire = v.wire();
  const octets ulpdu = v.ulpdu();
  // However the ULPDU is divided into header and payload, the octets are the same.
  for (const std::size_t header : {ulpdu.size(), std::size_t{1}, std::size_t{14}, ulpdu.size() / 2}) {
    if (header > tx_batch::max_header && header != ulpdu.size()) continue;
    fpdu_tx tx;
    tx.start(v.crc, false);
    const octets first(ulpdu.begin(), ulpdu.begin() + static_cast<std::ptrdiff_t>(header));
    const octets rest(ulpdu.begin() + static_cast<std::ptrdiff_t>(header), ulpdu.end());
    EXPECT_EQ(to_hex(framed(tx, first, rest.empty() ? std::vector<octets>{} : std::vector<octets>{rest})),
              to_hex(wire));
    EXPECT_EQ(tx.position(), wire.size());
  }
}

INSTANTIATE_TEST_SUITE_P(AppendixA2, FpduVectorsTx, testing::ValuesIn(test::fpdu_vectors()),
                         [](const auto& p) { return p.param.name; });

class MarkerVectorsTx : public testing::TestWithParam<test::marker_vector> {};

// MPA-15 MPA-16 MPA-17 MPA-20 MPA-21 MPA-23 MPA-24 MPA-25 MPA-26 MPA-27 MPA-29
TEST_P(MarkerVectorsTx, AreFramedOctetByOctet) {
  const test::marker_vector& v = GetParam();
  fpdu_tx tx;
  tx.start(true, true, v.position);
  octets got;
  for (const octets& ulpdu : v.ulpdus) {
    const octets header(ulpdu.begin(), ulpdu.begin() + 14);
    const octets payload(ulpdu.begin() + 14, ulpdu.end());
    test::append(got, framed(tx, header, {payload}));
  }
  for (const test::placed_octets& p : v.wire) {
    ASSERT_LE(p.at + p.octets.size(), got.size());
    const octets part(got.begin() + static_cast<std::ptrdiff_t>(p.at),
                      got.begin() + static_cast<std::ptrdiff_t>(p.at + p.octets.size()));
    EXPECT_EQ(to_hex(part), to_hex(p.octets)) << "at " << p.at;
  }
  EXPECT_EQ(got.size(), v.size);
}

INSTANTIATE_TEST_SUITE_P(AppendixA4, MarkerVectorsTx, testing::ValuesIn(test::marker_vectors()),
                         [](const auto& p) { return p.param.name; });

// MPA-18
TEST(FpduTx, WithoutMarkersNoneAreSent) {
  fpdu_tx tx;
  tx.start(true, false);
  EXPECT_FALSE(tx.markers());
  slow_stream expected(true, false);
  octets got;
  for (int i = 0; i < 40; ++i) {
    const octets ulpdu = counting(100, static_cast<std::size_t>(i));
    expected.add(ulpdu);
    test::append(got, framed(tx, ulpdu));
  }
  EXPECT_EQ(got, expected.wire);
}

// MPA-13: the field is there, and zero.
TEST(FpduTx, WithCrcOffTheFieldIsZero) {
  fpdu_tx tx;
  tx.start(false, false);
  EXPECT_EQ(to_hex(framed(tx, from_hex("c140 00000001 00000000 00000000"))),
            "000ec140000000010000000000000000"
            "00000000");
  const octets large = framed(tx, counting(18), {counting(2000)});
  EXPECT_EQ(octets(large.end() - 4, large.end()), octets(4));
}

// MPA-11
TEST(FpduTx, PadIsZeroAndFillsAGroupOfFour) {
  for (std::size_t size = 1; size < 40; ++size) {
    fpdu_tx tx;
    tx.start(true, false);
    const octets wire = framed(tx, octets(size, std::byte{0xFF}));
    ASSERT_EQ(wire.size() % 4, 0u) << size;
    ASSERT_LE(wire.size() - size - 6, 3u) << size;
    for (std::size_t i = 2 + size; i < wire.size() - 4; ++i) ASSERT_EQ(wire[i], std::byte{0}) << size;
  }
}

TEST(FpduTx, ConsecutiveSmallFpdusAreOnePiece) {
  fpdu_tx tx;
  tx.start(true, true);
  tx_batch batch;
  const octets header = counting(14), payload = counting(64);
  const const_bytes piece = payload;
  int framed_count = 0;
  while (batch.has_room(header.size() + payload.size(), 1)) {
    tx.frame(batch, header, {&piece, 1});
    ++framed_count;
  }
  EXPECT_EQ(batch.pieces().size(), 1u);
  EXPECT_GT(framed_count, 500);
}

TEST(FpduTx, LargePayloadGoesByReferenceBetweenOnePieceOfFraming) {
  fpdu_tx tx;
  tx.start(true, false);
  tx_batch batch;
  const octets header = counting(14), payload = counting(1426);
  const const_bytes piece = payload;
  for (int i = 0; i < 16; ++i) tx.frame(batch, header, {&piece, 1});
  // Framing, payload, framing that joins the next header, payload, ..., framing.
  ASSERT_EQ(batch.pieces().size(), 33u);
  for (std::size_t i = 1; i < 33; i += 2) EXPECT_EQ(batch.pieces()[i].data, payload.data());
}

TEST(FpduTx, SmallPayloadIsCopiedAndMayChangeAfterwards) {
  fpdu_tx tx;
  tx.start(true, false);
  tx_batch batch;
  octets payload = counting(tx_batch::copy_limit);
  const const_bytes piece = payload;
  tx.frame(batch, counting(14), {&piece, 1});
  std::ranges::fill(payload, std::byte{0});
  slow_stream expected(true, false);
  expected.add(counting(14) + counting(tx_batch::copy_limit));
  EXPECT_EQ(drain(batch), expected.wire);
}

// MPA-20: no batch ever overflows, whatever has_room() was asked with. (Asserts and the sanitizer look on.)
TEST(FpduTx, FillsABatchWithAnyMixOfPieces) {
  random_source random(11);
  const octets memory = random.octets(70000);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const bool crc = random.chance(80), markers = random.chance(50);
    fpdu_tx tx;
    tx.start(crc, markers);
    slow_stream expected(crc, markers);
    tx_batch batch;
    while (true) {
      const octets header(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(random.between(1, 128)));
      std::vector<const_bytes> pieces;
      octets ulpdu = header;
      const std::size_t count = random.chance(5) ? 200 : random.below(5);
      const std::size_t most = random.chance(50) ? 40 : (count > 10 ? 300 : 9000);
      for (std::size_t i = 0; i < count; ++i) {
        pieces.push_back(const_bytes{memory}.subspan(random.below(1000), random.below(most)));
        test::append(ulpdu, pieces.back());
      }
      if (!batch.has_room(ulpdu.size(), pieces.size())) break;
      tx.frame(batch, header, pieces);
      expected.add(ulpdu);
    }
    ASSERT_LE(batch.pieces().size(), tx_batch::max_pieces);
    ASSERT_EQ(tx.position(), expected.wire.size());
    ASSERT_TRUE(drain(batch) == expected.wire);
  }
}

TEST(FpduTx, AnFpduOfVeryManyPiecesFitsAnEmptyBatch) {
  const octets memory = counting(64768);
  for (const bool markers : {false, true}) {
    fpdu_tx tx;
    tx.start(true, markers);
    tx_batch batch;
    std::vector<const_bytes> pieces;
    for (std::size_t i = 0; i < 700; ++i) pieces.push_back(const_bytes{memory}.subspan(i * 92, 92));
    ASSERT_TRUE(batch.has_room(18 + 700 * 92, pieces.size()));
    tx.frame(batch, counting(18), pieces);
    slow_stream expected(true, markers);
    expected.add(counting(18) + octets(memory.begin(), memory.begin() + 700 * 92));
    EXPECT_TRUE(drain(batch) == expected.wire);
  }
}

// MPA-06: every size from 1 to beyond a marker interval, at every marker phase in turn.
TEST(FpduTx, EverySizeAgreesWithTheSlowSender) {
  for (const bool markers : {false, true}) {
    fpdu_tx tx;
    tx.start(true, markers);
    slow_stream expected(true, markers);
    octets got;
    for (std::size_t size = 1; size <= 1100; ++size) {
      const octets ulpdu = counting(size, size);
      expected.add(ulpdu);
      const std::size_t header = std::min<std::size_t>(size, 14);
      test::append(got, framed(tx, octets(ulpdu.begin(), ulpdu.begin() + static_cast<std::ptrdiff_t>(header)),
                               {octets(ulpdu.begin() + static_cast<std::ptrdiff_t>(header), ulpdu.end())}));
    }
    EXPECT_TRUE(got == expected.wire);
  }
}

// MPA-22
TEST(FpduTx, MarkerPhaseHoldsAcrossFourGigabytes) {
  for (const std::uint64_t position : {std::uint64_t{0xFFFFFF00}, std::uint64_t{0x100000000}, std::uint64_t{1} << 40}) {
    fpdu_tx tx;
    tx.start(true, true, position);
    slow_stream expected(true, true, position);
    octets got;
    for (std::size_t i = 0; i < 30; ++i) {
      expected.add(counting(150 + i));
      test::append(got, framed(tx, counting(150 + i)));
    }
    EXPECT_EQ(got, expected.wire);
    EXPECT_EQ(tx.position(), position + got.size());
  }
}

}  // namespace
}  // namespace iwarp::mpa
