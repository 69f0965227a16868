// The whole engine: a connected stream, with CRC off so that mutations reach DDP and RDMAP, fed with a list of actions:
// octets of the peer, posts of the consumer, octets taken by TCP, time, close. Whatever comes: no access outside the
// regions, every request completes exactly once, at most one Terminate and nothing after it.
#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "mpa/startup_exchange.hpp"
#include "rdmap/stream.hpp"
#include "tests/fuzz/check.hpp"

using namespace iwarp;

namespace {

constexpr std::uint32_t depth = 8;
constexpr stag region_key{0x00000101};
constexpr std::size_t region_size = 4096;

class fuzz_consumer final : public rdmap::consumer {
 public:
  std::array<std::byte, region_size> memory{};
  bool valid = true;
  std::deque<rdmap::receive_slot> posted;
  std::deque<rdmap::receive_slot> taken;
  std::uint64_t sends_done = 0;
  int pins = 0;

  rdmap::access_result access_remote(stag key, std::uint64_t offset, std::size_t size,
                                     rdmap::remote_right) noexcept override {
    FUZZ_CHECK(size != 0);
    if (key != region_key || !valid) return {.error = rdmap::access_error::invalid_stag};
    if (offset + size < offset) return {.error = rdmap::access_error::wraps};
    if (offset > region_size || size > region_size - offset) return {.error = rdmap::access_error::out_of_bounds};
    ++pins;
    return {.bytes = mutable_bytes{memory}.subspan(offset, size), .pin = this};
  }
  rdmap::access_result access_local(stag key, void* address, std::size_t size, bool) noexcept override {
    FUZZ_CHECK(size != 0);
    if (key != region_key || !valid) return {.error = rdmap::access_error::invalid_stag};
    const auto at = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory.data());
    if (at > region_size || size > region_size - at) return {.error = rdmap::access_error::out_of_bounds};
    ++pins;
    return {.bytes = mutable_bytes{memory}.subspan(at, size), .pin = this};
  }
  void release(void* pin) noexcept override {
    FUZZ_CHECK(pin == this && pins > 0);
    --pins;
  }
  rdmap::access_error invalidate_remote(stag key) noexcept override {
    if (key != region_key) return rdmap::access_error::invalid_stag;
    valid = false;
    return rdmap::access_error::none;
  }
  rdmap::access_error invalidate_local(stag key) noexcept override { return invalidate_remote(key); }
  rdmap::receive_slot* take_receive() noexcept override {
    if (posted.empty()) return nullptr;
    taken.push_back(posted.front());
    posted.pop_front();
    return &taken.back();
  }
  void send_completed(const rdmap::work_request& request, rdmap::wr_status) noexcept override {
    FUZZ_CHECK(request.id == sends_done);  // in order, once each
    ++sends_done;
  }
  void receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& outcome) noexcept override {
    FUZZ_CHECK(!taken.empty() && &slot == &taken.front());  // in order, once each
    FUZZ_CHECK(outcome.status != rdmap::wr_status::success || outcome.size <= slot.size);
    taken.pop_front();
  }
};

struct reader {
  const_bytes in;
  std::uint8_t octet() {
    if (in.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(in[0]);
    in = in.subspan(1);
    return value;
  }
  const_bytes octets(std::size_t n) {
    const const_bytes part = in.first(std::min(n, in.size()));
    in = in.subspan(part.size());
    return part;
  }
};

struct harness {
  explicit harness(const rdmap::stream_options& options) : ring(depth, 4, 32), stream(options, user, ring, rx, tx) {}

  void take(std::size_t n) {
    const auto pieces = stream.tx_window(now);
    std::size_t offered = 0;
    for (const gather_piece& piece : pieces) {
      // Every octet offered must be readable: a sanitizer looks at them.
      const auto* at = static_cast<const unsigned char*>(piece.data);
      for (std::size_t i = 0; i < piece.size; ++i) sum += at[i];
      offered += piece.size;
    }
    if (const std::size_t size = std::min(n, offered); size != 0) stream.tx_advance(size, now);
  }
  void give(const_bytes octets) {
    while (!octets.empty()) {
      const mutable_bytes window = stream.rx_window();
      if (window.empty()) break;
      const std::size_t n = std::min(window.size(), octets.size());
      std::copy_n(octets.begin(), n, window.begin());
      octets = octets.subspan(n);
      stream.rx_commit(n, now);
    }
    stream.rx_park(now);
  }

  mpa::rx_memory& rx = shared_rx();
  mpa::tx_batch_pool tx;
  fuzz_consumer user;
  rdmap::send_ring ring;
  rdmap::stream stream;
  timestamp now{1};
  std::uint64_t posted = 0;
  unsigned sum = 0;

  static mpa::rx_memory& shared_rx() {
    static mpa::rx_memory memory;
    return memory;
  }
};

void post(harness& h, reader& in) {
  if (h.posted - h.user.sends_done >= depth) return;
  rdmap::work_request& request = h.ring[h.posted];
  request = {};
  request.id = h.posted;
  request.op = static_cast<rdmap::operation>(in.octet() % 7);
  request.fence = (in.octet() & 1) != 0;
  request.remote = {in.octet()};
  request.invalidate = (in.octet() & 3) == 0 ? stag{7} : region_key;
  request.sge_count = static_cast<std::uint16_t>(request.op == rdmap::operation::read ? 1 : in.octet() % 4);
  for (std::uint16_t i = 0; i < request.sge_count; ++i) {
    const std::size_t at = std::size_t{in.octet()} * 8;
    const std::uint32_t length = std::uint32_t{in.octet()} * 8;
    h.ring.elements(h.posted)[i] = {h.user.memory.data() + at, length, (in.octet() & 15) == 0 ? stag{9} : region_key};
    request.length += length;
  }
  h.stream.submit(++h.posted, h.now);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reader in{as_const_bytes(data, size)};
  const std::uint8_t flags = in.octet();
  const bool initiator = (flags & 1) != 0;
  rdmap::stream_options options;
  options.startup.crc = false;
  options.startup.markers = (flags & 2) != 0;
  options.startup.ird = options.startup.ord = (flags >> 2) % 4;
  options.startup.peer_to_peer = (flags & 32) != 0;
  options.shortage = (flags & 16) != 0 ? rdmap::receive_shortage::terminate : rdmap::receive_shortage::hold;
  harness h(options);

  // The start-up is played by a well-behaved peer: startup_fuzz looks at the other ones.
  mpa::startup_options peer_options = options.startup;
  peer_options.markers = (flags & 64) != 0;
  mpa::startup_exchange peer;
  if (initiator) {
    h.stream.initiate({}, h.now);
    peer.respond(peer_options);
    const auto frame = h.stream.tx_window(h.now)[0];
    FUZZ_CHECK(peer.consume(as_const_bytes(frame.data, frame.size)).has_value());
    h.take(frame.size);
    peer.accept(peer_options, {});
    h.give(peer.tx());
  } else {
    h.stream.respond(h.now);
    peer.initiate(peer_options, {});
    h.give(peer.tx());
    h.stream.accept({}, options.startup.ird, options.startup.ord, h.now);
    h.take(1000);
  }

  unsigned events[8] = {};
  for (int steps = 0; !in.in.empty() && steps < 2000; ++steps) {
    const std::uint8_t action = in.octet();
    switch (action % 8) {
      case 0:
      case 1:
        h.give(in.octets(in.octet()));
        break;
      case 2:
        post(h, in);
        break;
      case 3:
        if (h.user.posted.size() + h.user.taken.size() < depth) {
          static rdmap::sge elements[2];
          elements[0] = {h.user.memory.data(), 100, region_key};
          elements[1] = {h.user.memory.data() + 200, 50, region_key};
          h.user.posted.push_back({.id = 1, .elements = elements, .size = 150});
          h.stream.receive_posted(h.now);
        }
        break;
      case 4:
        h.take(in.octet());
        break;
      case 5:
        h.take(1 << 20);
        break;
      case 6:
        switch (in.octet() % 8) {
          case 0:
            h.stream.handle_eof(h.now);
            break;
          case 1:
            h.stream.close(h.now);
            break;
          case 2:
            h.stream.abort(h.now);
            break;
          case 3:
            h.stream.detach(h.user.memory, h.now);
            break;
          case 4:
            h.stream.handle_lost({}, h.now);
            break;
          case 5:
            h.stream.handle_emss(in.octet() * 64u);
            break;
          case 6:
            h.user.valid = true;
            break;
          case 7:
            h.stream.terminate({}, h.now);
            break;
        }
        break;
      case 7:
        h.now += std::chrono::milliseconds(in.octet() * 20);
        if (h.stream.next_deadline() <= h.now) h.stream.handle_deadline(h.now);
        break;
    }
    while (const auto event = h.stream.poll_event()) ++events[static_cast<unsigned>(*event)];
    FUZZ_CHECK(h.user.pins == 0);
  }
  h.stream.abort(h.now);
  while (const auto event = h.stream.poll_event()) ++events[static_cast<unsigned>(*event)];
  for (const unsigned count : events) FUZZ_CHECK(count <= 1);
  FUZZ_CHECK(h.user.sends_done == h.posted);
  FUZZ_CHECK(h.user.taken.empty());
  FUZZ_CHECK(h.stream.next_deadline() == never);
  return 0;
}
