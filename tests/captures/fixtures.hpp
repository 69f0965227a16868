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
  // FPDUs by operation, both directions together. Every other opcode: none.
  std::size_t writes;
  std::size_t read_requests;
  std::size_t read_responses;
  std::size_t sends;
};

inline constexpr fixture fixtures[] = {
    {.name = "siw-rping", .streams = 5, .writes = 15, .read_requests = 9, .read_responses = 15, .sends = 48},
    {.name = "siw-write-5000", .streams = 1, .writes = 24, .read_requests = 0, .read_responses = 0, .sends = 0},
    {.name = "siw-read-5000", .streams = 1, .writes = 0, .read_requests = 6, .read_responses = 24, .sends = 0},
    {.name = "siw-read-70000", .streams = 1, .writes = 0, .read_requests = 6, .read_responses = 300, .sends = 0},
    {.name = "siw-send-5000-pingpong", .streams = 1, .writes = 0, .read_requests = 0, .read_responses = 0, .sends = 48},
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
