// Part of iwarp-perf and of the raw TCP baseline.
// What a run gave, printed as one line or as one JSON object.
// Threading: free functions.  Time: passed in.  I/O: stdout.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/latency.hpp"

namespace iwarp::tools::perf {

struct report {
  std::string op;
  std::uint64_t size = 0;
  std::uint64_t depth = 0;
  double seconds = 0;  ///< that were measured
  bool crc = false;
  std::uint64_t messages = 0;
  const latency_histogram* latency = nullptr;  ///< with --latency
  bool half_round_trip = false;                ///< what its samples are
};

/// --json: {op, size, depth, seconds, crc, messages, octets, mb_per_s, messages_per_s, latency_us{min, p50, p90, p99,
/// p999, max}}; the last only with --latency. mb_per_s: 10^6 octets of messages in a second.
void print(const report& of, bool json);

}  // namespace iwarp::tools::perf
