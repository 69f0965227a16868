#include "tools/common/latency.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace iwarp::tools {
namespace {

using std::chrono::nanoseconds;

TEST(LatencyHistogram, WithoutSamplesEverythingIsZero) {
  const latency_histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.minimum(), 0);
  EXPECT_EQ(h.maximum(), 0);
  EXPECT_EQ(h.percentile(0.5), 0);
}

TEST(LatencyHistogram, OneSampleIsEveryPercentileExactly) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{127}, std::int64_t{128}, std::int64_t{1'000'003},
        std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
    latency_histogram h;
    h.add(nanoseconds(value));
    const double microseconds = static_cast<double>(value) / 1000;
    EXPECT_EQ(h.minimum(), microseconds);
    EXPECT_EQ(h.maximum(), microseconds);
    for (const double fraction : {0.0, 0.5, 1.0}) EXPECT_EQ(h.percentile(fraction), microseconds) << value;
  }
}

TEST(LatencyHistogram, NegativeCountsAsZero) {
  latency_histogram h;
  h.add(nanoseconds(-5));
  EXPECT_EQ(h.minimum(), 0);
  EXPECT_EQ(h.maximum(), 0);
}

TEST(LatencyHistogram, PercentilesAreWithinOnePercentOfTheExactOnes) {
  latency_histogram h;
  constexpr std::int64_t samples = 100'000;
  for (std::int64_t i = samples; i > 0; --i) h.add(nanoseconds(i * 10));
  EXPECT_EQ(h.minimum(), 0.01);
  EXPECT_EQ(h.maximum(), 1000);
  for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact = fraction * samples * 10 / 1000;
    EXPECT_NEAR(h.percentile(fraction), exact, exact * 0.008) << fraction;
  }
}

TEST(LatencyHistogram, SmallValuesAreExact) {
  latency_histogram h;
  for (int i = 1; i <= 100; ++i) h.add(nanoseconds(i));
  EXPECT_DOUBLE_EQ(h.percentile(0.5), 0.050);
  EXPECT_DOUBLE_EQ(h.percentile(0.99), 0.099);
}

}  // namespace
}  // namespace iwarp::tools
