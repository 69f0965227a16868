// Framing from memory: ULPDUs of one payload size into batches, as a connection does before it calls sendmsg(2).
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "mpa/fpdu_tx.hpp"
#include "mpa/tx_batch.hpp"

namespace {

using namespace iwarp;

// Arguments: octets of payload, CRC, markers.
void frame(benchmark::State& state) {
  const std::vector<std::byte> payload(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
  const std::array<std::byte, 14> header = {};
  const auto batch = std::make_unique<mpa::tx_batch>();
  const const_bytes piece = payload;
  const std::size_t ulpdu_size = header.size() + payload.size();
  mpa::fpdu_tx tx;
  tx.start(state.range(1) != 0, state.range(2) != 0);
  for (auto _ : state) {
    if (!batch->has_room(ulpdu_size, 1)) {
      benchmark::DoNotOptimize(batch->pieces().data());
      batch->clear();
    }
    tx.frame(*batch, header, {&piece, 1});
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(frame)->ArgNames({"payload", "crc", "markers"})->ArgsProduct({{64, 1440, 65000}, {0, 1}, {0, 1}});

}  // namespace
