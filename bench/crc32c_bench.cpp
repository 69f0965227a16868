// CRC32c of one run of octets, in cache: the lengths of small FPDUs, of an FPDU in an Ethernet segment, and of a large
// one.
#include <benchmark/benchmark.h>

#include <vector>

#include "mpa/crc32c.hpp"

namespace {

void crc32c_of(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  for (auto _ : state) benchmark::DoNotOptimize(iwarp::mpa::crc32c(data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_of)->Arg(20)->Arg(84)->Arg(256)->Arg(1440)->Arg(9000)->Arg(65536);

}  // namespace
