// Runs a fuzzer's function over every file of the folders named on the command line, and over each of their prefixes.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t seeds = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> octets{std::istreambuf_iterator<char>(file), {}};
      const std::vector<std::uint8_t> input(octets.begin(), octets.end());
      for (std::size_t n = 0; n <= input.size(); ++n) {
        const std::vector<std::uint8_t> prefix(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(n));
        LLVMFuzzerTestOneInput(prefix.data(), prefix.size());  // a copy of its own, so that a sanitizer sees its end
      }
      ++seeds;
    }
  }
  std::printf("%zu seeds\n", seeds);
  return seeds == 0 ? 1 : 0;
}
