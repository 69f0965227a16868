#include "tools/common/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace iwarp::tools {
namespace {

// Values below 2^sub_bits nanoseconds have a bucket each; every further power of two is cut into 2^sub_bits.
constexpr unsigned sub_bits = 7;
constexpr std::uint64_t sub_count = 1u << sub_bits;
constexpr std::size_t bucket_count = (64 - sub_bits + 1) * sub_count;

std::size_t bucket_of(std::uint64_t value) noexcept {
  if (value < sub_count) return static_cast<std::size_t>(value);
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - sub_bits - 1;
  return static_cast<std::size_t>((shift + 1) * sub_count + ((value >> shift) - sub_count));
}

// The middle of a bucket.
double value_of(std::size_t bucket) noexcept {
  if (bucket < sub_count) return static_cast<double>(bucket);
  const auto shift = static_cast<unsigned>(bucket / sub_count - 1);
  const std::uint64_t low = (sub_count + bucket % sub_count) << shift;
  return static_cast<double>(low) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
}

double microseconds(double nanoseconds) noexcept { return nanoseconds / 1000; }

}  // namespace

latency_histogram::latency_histogram() : buckets_(bucket_count), minimum_(std::numeric_limits<std::uint64_t>::max()) {}

void latency_histogram::add(std::chrono::nanoseconds sample) noexcept {
  const auto value = static_cast<std::uint64_t>(std::max<std::chrono::nanoseconds::rep>(0, sample.count()));
  ++buckets_[bucket_of(value)];
  ++count_;
  minimum_ = std::min(minimum_, value);
  maximum_ = std::max(maximum_, value);
}

double latency_histogram::minimum() const noexcept {
  return count_ == 0 ? 0 : microseconds(static_cast<double>(minimum_));
}
double latency_histogram::maximum() const noexcept { return microseconds(static_cast<double>(maximum_)); }

double latency_histogram::percentile(double fraction) const noexcept {
  if (count_ == 0) return 0;
  const auto rank =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank)
      return microseconds(std::clamp(value_of(i), static_cast<double>(minimum_), static_cast<double>(maximum_)));
  }
  return maximum();
}

}  // namespace iwarp::tools
