#include "mpa/crc32c.hpp"

#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::counting;
using test::from_hex;
using test::octets;
using test::random_source;
using test::slow_crc32c;

octets text(std::string_view s) {
  const const_bytes view = as_const_bytes(s.data(), s.size());
  return {view.begin(), view.end()};
}

struct vector_case {
  const char* name;
  octets input;
  std::uint32_t value;
};

octets reversed(octets in) {
  std::ranges::reverse(in);
  return in;
}

class Crc32cVectors : public testing::TestWithParam<vector_case> {};

// MPA-29
TEST_P(Crc32cVectors, GivesTheKnownValue) {
  EXPECT_EQ(crc32c(GetParam().input), GetParam().value);
  EXPECT_EQ(slow_crc32c(GetParam().input), GetParam().value) << "the reference of these tests";
}

INSTANTIATE_TEST_SUITE_P(
    Known, Crc32cVectors,
    testing::Values(
        vector_case{"Empty", {}, 0}, vector_case{"OneLetter", text("a"), 0xC1D04330},
        vector_case{"Digits", text("123456789"), 0xE3069283},
        vector_case{"Zeros", octets(32, std::byte{0}), 0x8A9136AA},
        vector_case{"Ones", octets(32, std::byte{0xFF}), 0x62A8AB43}, vector_case{"Rising", counting(32), 0x46DD794E},
        vector_case{"Falling", reversed(counting(32)), 0x113FDB5C},
        // RFC 5044 s4.4, as the value whose least significant octet goes first.
        vector_case{"Rfc5044First", from_hex("00000000 002A4143 00000000 00000000 00000001 00000000") + octets(24),
                    0x83992352},
        vector_case{"Rfc5044Second", from_hex("002A4143 00000000 00000000 00000002 00000000 00000014") + octets(24),
                    0x98589284}),
    [](const auto& p) { return p.param.name; });

TEST(Crc32c, AgreesWithTheBitwiseDefinitionForEveryLengthAndAlignment) {
  const octets data = random_source(1).octets(2048);
  for (std::size_t from = 0; from < 9; ++from) {
    for (std::size_t size = 0; size < 700; size += from == 0 ? 1 : 7) {
      const const_bytes run = const_bytes{data}.subspan(from, size);
      ASSERT_EQ(crc32c(run), slow_crc32c(run)) << size << " octets from " << from;
    }
  }
}

TEST(Crc32c, ContinuesAcrossEveryCut) {
  const octets data = random_source(2).octets(1500);
  const std::uint32_t whole = slow_crc32c(data);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    ASSERT_EQ(crc32c(const_bytes{data}.subspan(cut), crc32c(const_bytes{data}.first(cut))), whole) << cut;
  }
}

TEST(Crc32c, AgreesForLongRuns) {
  for (const std::size_t size : {4096u, 65536u, 65537u, 300001u}) {
    const octets data = random_source(size).octets(size);
    EXPECT_EQ(crc32c(data), slow_crc32c(data)) << size;
  }
}

}  // namespace
}  // namespace iwarp::mpa
