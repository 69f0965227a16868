// Part of the programs.
// Latencies as a histogram of fixed size: any number of samples, percentiles within 0.8 percent, minimum and maximum
// exact.
// Threading: not thread-safe; one caller at a time.  Time: passed in.  I/O: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace iwarp::tools {

class latency_histogram {
 public:
  latency_histogram();

  /// Negative counts as 0.
  void add(std::chrono::nanoseconds sample) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Microseconds; 0 without samples.
  [[nodiscard]] double minimum() const noexcept;
  [[nodiscard]] double maximum() const noexcept;
  /// The sample that `fraction` (0..1) of the samples do not exceed, in microseconds; 0 without samples.
  [[nodiscard]] double percentile(double fraction) const noexcept;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t minimum_;
  std::uint64_t maximum_ = 0;
};

}  // namespace iwarp::tools
