#include "tools/perf/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace iwarp::tools::perf {

void print(const report& of, bool json) {
  const std::uint64_t octets = of.messages * of.size;
  const double mb_per_s = static_cast<double>(octets) / 1e6 / of.seconds;
  const double messages_per_s = static_cast<double>(of.messages) / of.seconds;
  if (json) {
    nlohmann::ordered_json out = {{"op", of.op},           {"size", of.size},      {"depth", of.depth},
                                  {"seconds", of.seconds}, {"crc", of.crc},        {"messages", of.messages},
                                  {"octets", octets},      {"mb_per_s", mb_per_s}, {"messages_per_s", messages_per_s}};
    if (of.latency != nullptr)
      out["latency_us"] = {{"min", of.latency->minimum()},          {"p50", of.latency->percentile(0.5)},
                           {"p90", of.latency->percentile(0.9)},    {"p99", of.latency->percentile(0.99)},
                           {"p999", of.latency->percentile(0.999)}, {"max", of.latency->maximum()}};
    fmt::print("{}\n", out.dump());
  } else if (of.latency != nullptr) {
    fmt::print(
        "{} of {} octets, crc {}: {} in {:.2f} s, {}: min {:.2f}, p50 {:.2f}, p90 {:.2f}, p99 {:.2f}, p99.9 {:.2f}, "
        "max {:.2f} us\n",
        of.op, of.size, of.crc ? "on" : "off", of.messages, of.seconds,
        of.half_round_trip ? "half round trip" : "round trip", of.latency->minimum(), of.latency->percentile(0.5),
        of.latency->percentile(0.9), of.latency->percentile(0.99), of.latency->percentile(0.999),
        of.latency->maximum());
  } else {
    fmt::print("{} of {} octets, depth {}, crc {}: {} in {:.2f} s, {:.1f} MB/s, {:.0f} messages/s\n", of.op, of.size,
               of.depth, of.crc ? "on" : "off", of.messages, of.seconds, mb_per_s, messages_per_s);
  }
  std::fflush(stdout);
}

}  // namespace iwarp::tools::perf
