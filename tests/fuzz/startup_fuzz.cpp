// MPA start-up: any octets, in any cut, at either role. The reader never takes more than a frame, the exchange never
// crashes, and what was agreed stays within what both sides said.
#include <algorithm>

#include "mpa/startup_exchange.hpp"
#include "tests/fuzz/check.hpp"

using namespace iwarp;

// First octet: options; second: size of the cuts; then what the peer sends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  mpa::startup_options own;
  own.revision = (data[0] & 1) != 0 ? 1 : 2;
  own.crc = (data[0] & 2) != 0;
  own.markers = (data[0] & 4) != 0;
  own.peer_to_peer = own.revision == 2 && (data[0] & 8) != 0;
  own.rtr = {(data[0] & 16) != 0, true, (data[0] & 32) != 0};
  own.ird = own.ord = data[1];
  const bool initiator = (data[0] & 64) != 0;
  const std::size_t cut = std::max<std::size_t>(data[1] % 64, 1);
  const_bytes in = as_const_bytes(data + 2, size - 2);

  mpa::startup_exchange exchange;
  if (initiator) {
    exchange.initiate(own, {});
  } else {
    exchange.respond(own);
  }
  std::size_t taken = 0;
  while (!in.empty()) {
    const const_bytes part = in.first(std::min(cut, in.size()));
    const auto used = exchange.consume(part);
    if (!used) {
      FUZZ_CHECK(exchange.current() == mpa::startup_exchange::state::failed && exchange.error());
      return 0;
    }
    FUZZ_CHECK(*used <= part.size());
    taken += *used;
    FUZZ_CHECK(taken <= mpa::startup_fixed_size + mpa::max_private_data);
    if (exchange.current() == mpa::startup_exchange::state::deciding)
      exchange.accept(own, part.first(part.size() % 100));
    if (*used < part.size() || exchange.current() == mpa::startup_exchange::state::agreed ||
        exchange.current() == mpa::startup_exchange::state::rejected) {
      break;
    }
    in = in.subspan(*used);
  }
  if (exchange.current() == mpa::startup_exchange::state::agreed) {
    const mpa::negotiated& agreed = exchange.agreement();
    const mpa::startup_frame& peer = exchange.peer_frame();
    FUZZ_CHECK(agreed.crc == (own.crc || peer.header.crc));
    FUZZ_CHECK(agreed.tx_markers == peer.header.markers && agreed.rx_markers == own.markers);
    FUZZ_CHECK(agreed.ird <= mpa::max_depth && agreed.ord <= mpa::max_depth);
    FUZZ_CHECK(peer.data_size <= mpa::max_private_data);
  }
  FUZZ_CHECK(exchange.tx().size() <= mpa::startup_fixed_size + mpa::max_private_data);
  return 0;
}
