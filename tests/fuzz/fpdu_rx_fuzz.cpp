// The FPDU receiver: any octets, with and without CRC and markers, cut in two ways. Both give the same ULPDUs and the
// same end, and no ULPDU is longer than what came.
#include <algorithm>
#include <vector>

#include "mpa/fpdu_rx.hpp"
#include "tests/fuzz/check.hpp"

using namespace iwarp;

namespace {

class collector final : public mpa::ulpdu_sink {
 public:
  explicit collector(unsigned hold_every) : hold_every_(hold_every) {}
  result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override {
    if (hold_every_ != 0 && ++offers_ % hold_every_ == 0) return mpa::ulpdu_answer::held;
    std::vector<std::byte> octets(unit.size());
    unit.copy_to(0, octets);
    FUZZ_CHECK(std::equal(unit.head().begin(), unit.head().end(), octets.begin()));
    units.push_back(std::move(octets));
    return mpa::ulpdu_answer::taken;
  }
  std::vector<std::vector<std::byte>> units;

 private:
  unsigned hold_every_;
  unsigned offers_ = 0;
};

std::error_code feed(const_bytes in, bool crc, bool markers, std::size_t cut, collector& sink) {
  static mpa::rx_memory memory;
  mpa::fpdu_rx rx(memory, sink);
  rx.start(crc, markers);
  while (!in.empty()) {
    const auto taken = rx.consume(in.first(std::min(cut, in.size())));
    if (!taken) return taken.error();
    in = in.subspan(*taken);
    for (auto state = rx.resume(); !state || *state == mpa::fpdu_rx::status::held; state = rx.resume()) {
      if (!state) return state.error();
    }
    rx.park();
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 300000) return 0;
  const bool crc = (data[0] & 1) != 0;
  const bool markers = (data[0] & 2) != 0;
  const_bytes in = as_const_bytes(data + 2, size - 2);
  collector whole(0);
  collector pieces((data[0] >> 2) % 8 == 1 ? 0 : (data[0] >> 2) % 8);
  const std::error_code a = feed(in, crc, markers, std::max<std::size_t>(in.size(), 1), whole);
  const std::error_code b = feed(in, crc, markers, std::size_t{data[1]} + 1, pieces);
  FUZZ_CHECK(a == b);
  FUZZ_CHECK(whole.units == pieces.units);
  std::size_t total = 0;
  for (const auto& unit : whole.units) total += unit.size();
  FUZZ_CHECK(total <= in.size());
  return 0;
}
