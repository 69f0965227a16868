// Peers that vanish without a FIN or a reset, and peers that only seem to have.
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;

class VerbsDeadPeer : public testing::Test {
 protected:
  VerbsDeadPeer() {
    EXPECT_TRUE(side_.qp.connect(listener_.local(), without_rtr()));
    peer_.emplace(listener_.accept());
    EXPECT_TRUE(peer_->accept());
    side_.expect(event_kind::established);
  }
  void expect_lost() {
    const auto lost = side_.expect(event_kind::disconnected);
    EXPECT_EQ(lost.reason, mpa::errc::tcp_lost);
    EXPECT_EQ(lost.tcp_error, std::errc::timed_out) << lost.reason_text;
    EXPECT_TRUE(side_.wait_state(verbs::qp_state::error));
  }

  node node_{{.peer_timeout = 1s}};
  raw_listener listener_;
  side side_{node_, {.memory = 1024 * 1024}};
  std::optional<raw_peer> peer_;
};

TEST_F(VerbsDeadPeer, OctetsThatNobodyAcknowledges) {
  peer_->socket.die();
  side_.read(1, 0, 100, {.key = stag{0x100}});
  side_.receive(2, 0, 100);
  expect_lost();
  side_.expect(1, verbs::status::flushed);
  side_.expect(2, verbs::status::flushed);
}

TEST_F(VerbsDeadPeer, NothingToSend) {
  peer_->socket.die();
  side_.receive(1, 0, 100);
  expect_lost();
  side_.expect(1, verbs::status::flushed);
}

// A peer that holds back the stack's Sends for want of a receive keeps its window closed, and answers each probe.
TEST_F(VerbsDeadPeer, AClosedWindowIsNoDeath) {
  // More than both kernels' buffers hold.
  static constexpr std::uint32_t size = 1024 * 1024;
  static constexpr std::uint64_t count = 64;
  for (std::uint64_t id = 1; id <= count; ++id) side_.write(id, 0, size, {.key = stag{0x100}});
  ASSERT_TRUE(stays_quiet(side_.channel, 2500ms));
  std::uint64_t received = 0;
  std::thread reader([&] {
    while (const auto segment = peer_->ulpdu()) {
      received += segment->size() - 14;
      if (received == size * count) break;
    }
  });
  const bool settled = side_.settle();
  if (!settled) peer_->socket.reset();
  reader.join();
  EXPECT_TRUE(settled);
  EXPECT_EQ(received, size * count);
}

TEST(VerbsContext, PeerTimeoutInRange) {
  EXPECT_TRUE(verbs::context::create({.peer_timeout = 0s}));
  EXPECT_TRUE(verbs::context::create({.peer_timeout = 3600s}));
  for (const auto wrong : {-1s, 3601s}) {
    EXPECT_EQ(verbs::context::create({.peer_timeout = wrong}).error(), verbs::errc::invalid_argument);
  }
}

}  // namespace
}  // namespace iwarp::verbs_test
