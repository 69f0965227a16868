#include "mpa/ulpdu.hpp"

#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::octets;

/// `size` octets as they lie in an FPDU whose first marker is `first_marker` octets behind its ULPDU_Length.
octets in_fpdu(const octets& ulpdu, std::size_t first_marker) {
  octets raw(2);
  std::size_t next = first_marker;
  for (const std::byte b : ulpdu) {
    if (raw.size() == next) {
      raw.resize(raw.size() + 4, std::byte{0xDD});
      next += 512;
    }
    raw.push_back(b);
  }
  return raw;
}

TEST(Ulpdu, WithoutMarkersTheHeadLiesInTheStagingBuffer) {
  const octets content = counting(200);
  const octets raw = in_fpdu(content, std::numeric_limits<std::size_t>::max());
  const ulpdu unit(raw, content.size(), std::numeric_limits<std::size_t>::max(), 77);
  EXPECT_EQ(unit.size(), 200u);
  EXPECT_EQ(unit.stream_offset(), 77u);
  EXPECT_EQ(unit.head().data(), raw.data() + 2);
  EXPECT_EQ(unit.head().size(), ulpdu::max_head);
}

TEST(Ulpdu, AnEmptyUlpduHasAnEmptyHead) {
  const octets raw(4);
  const ulpdu unit(raw, 0, std::numeric_limits<std::size_t>::max(), 0);
  EXPECT_EQ(unit.size(), 0u);
  EXPECT_TRUE(unit.head().empty());
  unit.copy_to(0, {});
}

// MPA-28
TEST(Ulpdu, StripsMarkersWhereverTheyCut) {
  const octets content = counting(1600, 3);
  for (std::size_t first = 4; first <= 508; first += 4) {
    const octets raw = in_fpdu(content, first);
    const ulpdu unit(raw, content.size(), first, 0);
    const octets head(unit.head().begin(), unit.head().end());
    ASSERT_EQ(head, octets(content.begin(), content.begin() + ulpdu::max_head)) << first;
    for (const std::size_t from : {0u, 1u, 13u, 70u, 505u, 506u, 507u, 1013u, 1014u, 1599u, 1600u}) {
      for (const std::size_t size : {0u, 1u, 4u, 100u, 508u, 509u, 1017u, 1600u}) {
        if (size > content.size() - from) continue;
        octets out(size, std::byte{0xAA});
        unit.copy_to(from, out);
        const auto begin = content.begin() + static_cast<std::ptrdiff_t>(from);
        ASSERT_EQ(out, octets(begin, begin + static_cast<std::ptrdiff_t>(size))) << first << ' ' << from << ' ' << size;
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
