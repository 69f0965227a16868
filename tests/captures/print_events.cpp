// Prints the golden record of a capture: iwarp-capture-events FILE.pcap > NAME.events. pcap_fixtures/update runs it.
#include "tests/captures/events.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: iwarp-capture-events FILE.pcap\n", stderr);
    return 2;
  }
  const auto streams = iwarp::capture::read_streams(argv[1]);
  if (!streams) {
    std::fprintf(stderr, "iwarp-capture-events: %s\n", streams.error().c_str());
    return 1;
  }
  for (const std::string& line : iwarp::captures::to_lines(*streams)) std::puts(line.c_str());
  return 0;
}
