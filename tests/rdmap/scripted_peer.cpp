#include "tests/rdmap/scripted_peer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/hex.hpp"

namespace iwarp::stream_test {

using rdmap::stream_event;
using rdmap::stream_state;

scripted_peer::scripted_peer(const peer_options& peer, const rdmap::stream_options& options, const side_sizes& sizes)
    : side(options, sizes), accept_ird(options.startup.ird), accept_ord(options.startup.ord), peer_(peer) {
  side.engine.handle_emss(1448);
  framer.crc = splitter.crc = peer.crc || options.startup.crc;
  framer.markers = options.startup.markers;
  splitter.markers = peer.markers;
}

octets scripted_peer::own_frame() const {
  startup_words words{.reply = !peer_.initiator, .flags = 0, .revision = peer_.revision, .data = peer_.data};
  if (peer_.markers) words.flags |= flag_m;
  if (peer_.crc) words.flags |= flag_c;
  if (peer_.revision >= 2) {
    words.flags |= flag_s;
    words.ird_word = peer_.ird;
    words.ord_word = peer_.ord;
    if (peer_.peer_to_peer) {
      words.ird_word |= flag_a;
      if (peer_.rtr.send) words.ird_word |= flag_b;
      if (peer_.rtr.write) words.ord_word |= rtr_c;
      if (peer_.rtr.read) words.ord_word |= rtr_d;
    }
  }
  return startup_frame(words);
}

void scripted_peer::begin() {
  if (peer_.initiator) {
    side.engine.respond(side.now);
  } else {
    side.engine.initiate({}, side.now);
    startup_octets_ = drain();
  }
}

void scripted_peer::start() {
  begin();
  const octets frame = own_frame();
  EXPECT_EQ(feed(frame), frame.size());
  side.poll();
  if (peer_.initiator) {
    ASSERT_TRUE(side.told(stream_event::request)) << side.engine.error().message();
    side.engine.accept({}, accept_ird, accept_ord, side.now);
    startup_octets_ = drain();
    ASSERT_EQ(side.engine.state(), stream_state::wait_first_fpdu);
  } else {
    ASSERT_EQ(side.engine.state(), stream_state::open) << side.engine.error().message();
  }
  ASSERT_TRUE(read_startup_frame(startup_octets_)) << test_support::to_hex(startup_octets_);
  side.poll();
}

void scripted_peer::open() {
  start();
  if (peer_.initiator) send(segment(tagged{.stag = 1}));
  side.poll();
  ASSERT_EQ(side.engine.state(), stream_state::open);
}

std::size_t scripted_peer::feed(const_bytes in) {
  std::size_t taken = 0;
  while (taken != in.size()) {
    const mutable_bytes window = side.engine.rx_window();
    EXPECT_EQ(window.empty(), !side.engine.wants_read());
    if (window.empty()) break;
    const std::size_t n = std::min({chunk, window.size(), in.size() - taken});
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(taken), n, window.begin());
    taken += n;
    side.engine.rx_commit(n, side.now);
    side.engine.rx_park(side.now);
  }
  return taken;
}

octets scripted_peer::drain(std::size_t limit) {
  octets out;
  while (out.size() < limit && side.engine.wants() != mpa::disposition::abort) {
    const auto pieces = side.engine.tx_window(side.now);
    if (pieces.empty()) break;
    // One piece at a time, and never all of a long one: TCP takes what it likes.
    const auto& piece = pieces.front();
    const std::size_t n = std::min({piece.size, limit - out.size(), std::size_t{40'000}});
    const auto* data = static_cast<const std::byte*>(piece.data);
    out.insert(out.end(), data, data + n);
    side.engine.tx_advance(n, side.now);
  }
  return out;
}

std::vector<octets> scripted_peer::take() {
  const auto units = splitter.split(drain());
  EXPECT_EQ(splitter.rest(), 0u) << "the stream sent part of an FPDU";
  return units;
}

void scripted_peer::pass(duration time) {
  const timestamp end = side.now + time;
  while (side.engine.next_deadline() <= end) {
    side.now = std::max(side.now, side.engine.next_deadline());
    side.engine.handle_deadline(side.now);
  }
  side.now = end;
}

void scripted_peer::expect_terminate(const octets& ulpdu) {
  const auto units = take();
  ASSERT_FALSE(units.empty()) << "no Terminate; error: " << side.engine.error().message();
  EXPECT_EQ(test_support::to_hex(units.back()), test_support::to_hex(ulpdu));
  EXPECT_GE(side.engine.wants(), mpa::disposition::shutdown_write);
  EXPECT_NE(side.engine.wants(), mpa::disposition::abort);
  EXPECT_TRUE(side.engine.ended());
  // RDMAP-43: nothing behind it.
  side.engine.tx_window(side.now);
  EXPECT_TRUE(drain().empty());
}

void scripted_peer::expect_reset() {
  EXPECT_EQ(side.engine.wants(), mpa::disposition::abort) << side.engine.error().message();
  EXPECT_TRUE(drain().empty());
  EXPECT_EQ(side.engine.state(), stream_state::closed);
}

}  // namespace iwarp::stream_test
