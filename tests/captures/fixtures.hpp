// Internal to tests/captures.
// The captures in pcap_fixtures/ and what is known of each from elsewhere: counts by Wireshark 4.0.17's reading.
// Threading: constants.  Time: none.  I/O: load() reads files.
#pragma once

#include "samples/support/tcp_capture.hpp"

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace iwarp::captures {

struct fixture {
  const char* name;
  std::size_t streams;
  // FPDUs by operation, both directions together.
  std::size_t writes;
  std::size_t read_requests;
  std::size_t read_responses;
  std::size_t sends;
  std::size_t sends_solicited = 0;
  std::size_t sends_invalidate = 0;
  std::size_t terminates = 0;
  bool ends_well = true;  ///< every connection is accepted, carries no error and ends gracefully
};

inline constexpr fixture fixtures[] = {
    {.name = "siw-rping", .streams = 5, .writes = 15, .read_requests = 9, .read_responses = 15, .sends = 48},
    {.name = "siw-write-5000", .streams = 1, .writes = 24, .read_requests = 0, .read_responses = 0, .sends = 0},
    {.name = "siw-read-5000", .streams = 1, .writes = 0, .read_requests = 6, .read_responses = 24, .sends = 0},
    {.name = "siw-read-70000", .streams = 1, .writes = 0, .read_requests = 6, .read_responses = 300, .sends = 0},
    {.name = "siw-send-5000-pingpong", .streams = 1, .writes = 0, .read_requests = 0, .read_responses = 0, .sends = 48},
    {.name = "ours-siw-ping", .streams = 2, .writes = 12, .read_requests = 4, .read_responses = 12, .sends = 16},
    {.name = "ours-siw-ping-crc", .streams = 2, .writes = 13, .read_requests = 4, .read_responses = 12, .sends = 16},
    {.name = "ours-siw-operations",
     .streams = 1,
     .writes = 4,
     .read_requests = 2,
     .read_responses = 8,
     .sends = 5,
     .sends_solicited = 1,
     .sends_invalidate = 1},
    {.name = "ours-siw-revision-1", .streams = 1, .writes = 4, .read_requests = 2, .read_responses = 8, .sends = 5},
    {.name = "siw-nvme",
     .streams = 2,
     .writes = 36,
     .read_requests = 1,
     .read_responses = 1,
     .sends = 52,
     .sends_invalidate = 11},
    {.name = "ours-siw-terminate",
     .streams = 2,
     .writes = 2,
     .read_requests = 0,
     .read_responses = 0,
     .sends = 4,
     .terminates = 2,
     .ends_well = false},
    {.name = "ours-siw-reject",
     .streams = 2,
     .writes = 0,
     .read_requests = 0,
     .read_responses = 0,
     .sends = 0,
     .ends_well = false},
};

inline std::filesystem::path fixture_path(const fixture& f, const char* extension) {
  return std::filesystem::path(IWARP_FIXTURES) / (std::string(f.name) + extension);
}

/// Throws std::runtime_error, which fails the test that asked.
inline std::vector<capture::tcp_stream> load(const fixture& f) {
  auto streams = capture::read_streams(fixture_path(f, ".pcap"));
  if (!streams) throw std::runtime_error(streams.error());
  return *std::move(streams);
}

/// "siw-read-5000" -> "siw_read_5000", as GoogleTest wants its parameter names.
inline std::string test_name(const fixture& f) {
  std::string name = f.name;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

inline void PrintTo(const fixture& f, std::ostream* out) { *out << f.name; }

}  // namespace iwarp::captures
