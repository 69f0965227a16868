// Writes the synthetic captures as files, for tests that run programs on them and as seeds of the fuzzer.
//   iwarp-dump-catalog FOLDER
#include <cstdio>
#include <filesystem>

#include "tests/dump/catalog.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const auto& e : iwarp::dump_test::catalog()) {
    iwarp::dump_test::write_pcap(folder / (e.name + ".pcap"), e.frames, e.link_type);
    std::printf("%s fpdus=%llu lost=%llu rules=%s\n", e.name.c_str(), static_cast<unsigned long long>(e.fpdus),
                static_cast<unsigned long long>(e.lost), e.rules.c_str());
  }
}
