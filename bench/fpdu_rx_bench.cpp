// Receiving from memory: a stream of equal FPDUs, taken in reads of 256 KiB, verified, and copied out once, as the
// layers above do.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "mpa/fpdu_rx.hpp"
#include "mpa/fpdu_tx.hpp"
#include "mpa/rx_memory.hpp"
#include "mpa/tx_batch.hpp"

namespace {

using namespace iwarp;

constexpr std::size_t header_size = 14;

class placing_sink final : public mpa::ulpdu_sink {
 public:
  result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override {
    unit.copy_to(header_size, mutable_bytes(target_).first(unit.size() - header_size));
    return mpa::ulpdu_answer::taken;
  }

 private:
  std::vector<std::byte> target_ = std::vector<std::byte>(65536);
};

// At least 4 MiB of FPDUs, so that the stream does not stay in the nearest cache.
std::vector<std::byte> make_stream(std::size_t payload_size, bool crc, bool markers) {
  const std::vector<std::byte> payload(payload_size, std::byte{0x5a});
  const std::array<std::byte, header_size> header = {};
  const const_bytes piece = payload;
  const auto batch = std::make_unique<mpa::tx_batch>();
  mpa::fpdu_tx tx;
  tx.start(crc, markers);
  std::vector<std::byte> stream;
  while (stream.size() < (std::size_t{4} << 20)) {
    tx.frame(*batch, header, {&piece, 1});
    for (const gather_piece& part : batch->pieces()) {
      const auto* first = static_cast<const std::byte*>(part.data);
      stream.insert(stream.end(), first, first + part.size);
    }
    batch->clear();
  }
  return stream;
}

// Arguments: octets of payload, CRC, markers.
void receive(benchmark::State& state) {
  const bool crc = state.range(1) != 0;
  const bool markers = state.range(2) != 0;
  const auto stream = make_stream(static_cast<std::size_t>(state.range(0)), crc, markers);
  mpa::rx_memory memory;
  placing_sink sink;
  std::uint64_t fpdus = 0;
  for (auto _ : state) {
    mpa::fpdu_rx rx(memory, sink);
    rx.start(crc, markers);
    for (const_bytes left = stream; !left.empty();) {
      const mutable_bytes window = rx.window();
      const std::size_t read = std::min({window.size(), left.size(), mpa::rx_memory::read_size});
      std::memcpy(window.data(), left.data(), read);  // in the place of read(2)
      if (!rx.commit(read)) return state.SkipWithError("the receiver refused its own sender's stream");
      left = left.subspan(read);
    }
    fpdus += rx.counters().fpdus;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(fpdus));
  state.SetBytesProcessed(static_cast<std::int64_t>(fpdus) * state.range(0));
}
BENCHMARK(receive)->ArgNames({"payload", "crc", "markers"})->ArgsProduct({{64, 1440, 65000}, {0, 1}, {0, 1}});

}  // namespace
