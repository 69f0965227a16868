#include "mpa/mulpdu.hpp"

#include <gtest/gtest.h>

namespace iwarp::mpa {
namespace {

struct mulpdu_case {
  std::uint32_t emss, plain, with_markers;
};

class Mulpdu : public testing::TestWithParam<mulpdu_case> {};

// MPA-02 MPA-03 MPA-37 MPA-38 MPA-39
TEST_P(Mulpdu, FollowsTheFormulaWithinItsLimits) {
  EXPECT_EQ(mulpdu(GetParam().emss, false), GetParam().plain);
  EXPECT_EQ(mulpdu(GetParam().emss, true), GetParam().with_markers);
}

INSTANTIATE_TEST_SUITE_P(Rfc5044, Mulpdu,
                         testing::Values(mulpdu_case{0, 128, 128}, mulpdu_case{1, 128, 128}, mulpdu_case{120, 128, 128},
                                         mulpdu_case{536, 530, 522}, mulpdu_case{1440, 1434, 1422},
                                         mulpdu_case{1448, 1442, 1430}, mulpdu_case{1460, 1454, 1442},
                                         mulpdu_case{8948, 8942, 8870}, mulpdu_case{8960, 8954, 8882},
                                         mulpdu_case{32741, 32734, 32478}, mulpdu_case{65483, 64768, 64768}),
                         [](const auto& p) { return "Emss" + std::to_string(p.param.emss); });

// MPA-03
TEST(Mulpdu, NeverLeavesItsLimitsForAnySegmentSize) {
  for (std::uint32_t emss = 0; emss < 70000; ++emss) {
    for (const bool markers : {false, true}) {
      ASSERT_GE(mulpdu(emss, markers), 128u) << emss;
      ASSERT_LE(mulpdu(emss, markers), 64768u) << emss;
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
