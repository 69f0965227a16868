#include "tcp_glue/driver.hpp"

#include "fake_engine.hpp"
#include "tcp_glue/memory_link.hpp"
#include "tcp_glue/pair_runner.hpp"

#include <gtest/gtest.h>

namespace iwarp::tcp_glue {
namespace {

using namespace std::chrono_literals;
using mpa::disposition;
using side = memory_link::side;
using rx = driver::rx_result;
using tx = driver::tx_result;
using test::fake_engine;
using test::pattern;

struct Driver : testing::Test {
  memory_link link;
  fake_engine a{1000};
  fake_engine b{1000};
  pair_runner pair{link, a, b};

  void run() { ASSERT_TRUE(pair.run_until_idle(100000)); }
};

TEST_F(Driver, TransfersUnderEveryCutOfTheStream) {
  for (const std::size_t limit : {1, 2, 3, 7, 999, 1000, 1001}) {
    memory_link l;
    l.script_of(side::a).read_limit = limit;
    l.script_of(side::a).capacity = 333;
    fake_engine sender(10);
    fake_engine receiver(1000);
    sender.to_send = pattern(5000);
    sender.piece_size = 17;
    pair_runner p(l, sender, receiver);
    ASSERT_TRUE(p.run_until_idle(100000));
    EXPECT_EQ(receiver.received, sender.to_send) << limit;
  }
}

// MPA-80: queued octets go before the FIN, and FIN is indicated after all data.
TEST_F(Driver, ShutsDownAfterAllIsSent) {
  link.script_of(side::a).capacity = 300;
  a.to_send = pattern(10000);
  a.want = disposition::shutdown_write;
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::blocked);
  EXPECT_TRUE(pair.a().tx_blocked());
  EXPECT_FALSE(link.calls(side::a).write_shut);
  run();
  EXPECT_EQ(b.received, a.to_send);
  EXPECT_EQ(b.eofs, 1U);
  EXPECT_FALSE(b.octets_after_eof);
  EXPECT_TRUE(pair.a().write_shut());
  EXPECT_FALSE(pair.a().closed());
}

// MPA-81: each half ends by itself.
TEST_F(Driver, ReadsOnAfterItsOwnFin) {
  a.want = disposition::shutdown_write;
  run();
  EXPECT_EQ(b.eofs, 1U);
  EXPECT_FALSE(pair.b().closed());
  b.to_send = pattern(5000);
  run();
  EXPECT_EQ(a.received, b.to_send);
  b.want = disposition::close;
  run();
  EXPECT_EQ(a.eofs, 1U);
  EXPECT_TRUE(pair.b().closed());
}

TEST_F(Driver, SendsFinOnce) {
  a.want = disposition::shutdown_write;
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::drained);
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::drained);
  EXPECT_EQ(pair.b().pump_rx(0ms, 1000), rx::ended);
  EXPECT_EQ(pair.b().pump_rx(0ms, 1000), rx::ended);
  EXPECT_EQ(b.eofs, 1U);
}

TEST_F(Driver, ClosesAfterAllIsSent) {
  link.script_of(side::a).capacity = 300;
  a.to_send = pattern(10000);
  a.want = disposition::close;
  run();
  EXPECT_EQ(b.received, a.to_send);
  EXPECT_EQ(b.eofs, 1U);
  EXPECT_EQ(b.losses, 0U);
  EXPECT_TRUE(pair.a().closed());
  EXPECT_FALSE(link.calls(side::a).aborted);
}

TEST_F(Driver, AbortsAtOnceWhateverIsQueued) {
  a.to_send = pattern(10000);
  a.want = disposition::abort;
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::ended);
  EXPECT_TRUE(link.calls(side::a).aborted);
  EXPECT_EQ(link.calls(side::a).writes, 0U);
  run();
  EXPECT_EQ(b.losses, 1U);
  EXPECT_EQ(b.lost_reason, std::errc::connection_reset);
}

TEST_F(Driver, AbortsInTheMiddleOfReading) {
  b.to_send = pattern(10000);
  pair.b().pump_tx(0ms);
  a.abort_at = 2000;
  EXPECT_EQ(pair.a().pump_rx(0ms, driver::no_budget), rx::ended);
  EXPECT_TRUE(pair.a().closed());
  EXPECT_EQ(a.received.size(), 2000U);
  EXPECT_TRUE(link.calls(side::a).aborted);
}

TEST_F(Driver, EofMayEndTheConnection) {
  a.want = disposition::close;
  b.want_on_eof = disposition::abort;
  run();
  EXPECT_TRUE(pair.b().closed());
  EXPECT_TRUE(link.calls(side::b).aborted);
}

TEST_F(Driver, TouchesNothingOnceClosed) {
  a.want = disposition::close;
  pair.a().pump_tx(0ms);
  ASSERT_TRUE(pair.a().closed());
  const auto calls = a.calls;
  const auto io = link.calls(side::a);
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::ended);
  EXPECT_EQ(pair.a().pump_rx(0ms, 1000), rx::ended);
  EXPECT_FALSE(pair.a().rx_wanted());
  EXPECT_FALSE(pair.a().tx_blocked());
  EXPECT_EQ(a.calls, calls);
  EXPECT_EQ(link.calls(side::a).reads, io.reads);
  EXPECT_EQ(link.calls(side::a).writes, io.writes);
}

TEST_F(Driver, StopsAtAShortRead) {
  a.to_send = pattern(1500);
  pair.a().pump_tx(0ms);
  EXPECT_EQ(pair.b().pump_rx(0ms, driver::no_budget), rx::drained);
  EXPECT_EQ(link.calls(side::b).reads, 2U) << "1000, then 500 of 1000: no third call to hear that nothing is left";
  EXPECT_EQ(pair.b().octets_received(), 1500U);
  EXPECT_EQ(pair.a().octets_sent(), 1500U);
}

TEST_F(Driver, KeepsToItsBudgets) {
  a.to_send = pattern(10000);
  a.pieces_per_window = 1;
  a.piece_size = 1000;
  EXPECT_EQ(pair.a().pump_tx(0ms, 3000), tx::budget);
  EXPECT_EQ(a.sent, 3000U);
  EXPECT_FALSE(pair.a().tx_blocked());
  EXPECT_EQ(pair.a().pump_tx(0ms), tx::drained);
  EXPECT_EQ(pair.a().pump_tx(0ms, 0), tx::drained) << "nothing left is not a budget";
  EXPECT_EQ(pair.b().pump_rx(0ms, 2500), rx::budget);
  EXPECT_EQ(b.received.size(), 3000U) << "whole windows";
  EXPECT_EQ(pair.b().pump_rx(0ms, driver::no_budget), rx::drained);
  EXPECT_EQ(b.received, a.to_send);
}

TEST_F(Driver, ParksAfterEveryTurn) {
  pair.b().pump_rx(0ms, 1000);
  EXPECT_EQ(b.parks, 1U) << "also when nothing had arrived";
  a.to_send = pattern(5000);
  pair.a().pump_tx(0ms);
  pair.b().pump_rx(0ms, 2000);
  EXPECT_EQ(b.parks, 2U);
  EXPECT_FALSE(b.unparked);
  link.cut();
  pair.b().pump_rx(0ms, 1000);
  EXPECT_EQ(b.losses, 1U);
  EXPECT_FALSE(b.unparked) << "also when the connection is lost";
}

// An engine without a receive posted leaves octets to TCP's window, and nobody spins.
TEST_F(Driver, DoesNotReadForAnEngineThatTakesNothing) {
  b.takes_octets = false;
  link.script_of(side::a).capacity = 2000;
  a.to_send = pattern(10000);
  run();
  EXPECT_EQ(link.calls(side::b).reads, 0U);
  EXPECT_FALSE(pair.b().rx_wanted());
  EXPECT_EQ(pair.b().pump_rx(0ms, 1000), rx::blocked);
  EXPECT_EQ(link.calls(side::b).reads, 0U);
  EXPECT_EQ(link.unread(side::a), 2000U);
  EXPECT_TRUE(pair.a().tx_blocked());
  b.takes_octets = true;
  run();
  EXPECT_EQ(b.received, a.to_send);
}

// After the peer's FIN a socket is readable for ever.
TEST_F(Driver, WantsNoMoreReadsAfterFin) {
  EXPECT_TRUE(pair.b().rx_wanted());
  a.want = disposition::shutdown_write;
  run();
  EXPECT_FALSE(pair.b().rx_wanted());
  EXPECT_TRUE(pair.b().read_ended());
  const auto reads = link.calls(side::b).reads;
  EXPECT_EQ(pair.b().pump_rx(0ms, 1000), rx::ended);
  EXPECT_EQ(link.calls(side::b).reads, reads);
}

// MPA-02: the EMSS reaches the engine before anything is framed, and again when it changes.
TEST_F(Driver, TellsTheEmss) {
  pair.a().pump_tx(0ms);
  EXPECT_EQ(a.emss, std::vector<std::uint32_t>{1460});
  for (int i = 0; i < 200; ++i) pair.a().pump_tx(0ms);
  EXPECT_EQ(a.emss.size(), 1U) << "only when it changes";
  link.script_of(side::a).emss = 8960;
  for (int i = 0; i < 64; ++i) pair.a().pump_tx(0ms);
  EXPECT_EQ(a.emss, (std::vector<std::uint32_t>{1460, 8960}));
  link.script_of(side::a).emss = 536;
  a.to_send = pattern((1U << 20) + 10);
  link.script_of(side::a).capacity = 4U << 20;
  pair.a().pump_tx(0ms);
  pair.a().pump_tx(0ms);
  EXPECT_EQ(a.emss, (std::vector<std::uint32_t>{1460, 8960, 536}));
  pair.b().pump_rx(0ms, 1);
  EXPECT_EQ(b.emss.size(), 1U) << "a side that only reads knows it too";
}

TEST_F(Driver, NeverTellsAnEmssOfZero) {
  link.script_of(side::a).emss = 0;
  pair.a().pump_tx(0ms);
  ASSERT_EQ(a.emss.size(), 1U);
  EXPECT_GT(a.emss[0], 0U);
}

// MPA-74: every loss reaches the engine, once, whichever call met it.
TEST(DriverFaults, FailTheNthCallForEveryN) {
  for (const bool reading : {true, false}) {
    for (std::uint64_t n = 1;; ++n) {
      ASSERT_LT(n, 1000U);
      memory_link link;
      fake_engine a(100);
      fake_engine b(100);
      a.to_send = pattern(2000);
      a.pieces_per_window = 1;
      a.piece_size = 100;
      a.want_on_eof = disposition::close;
      b.echo = true;
      b.want_on_eof = disposition::close;
      a.want = disposition::shutdown_write;
      link.script_of(side::a).failure = std::make_error_code(std::errc::timed_out);
      (reading ? link.script_of(side::a).fail_read : link.script_of(side::a).fail_write) = n;
      pair_runner pair(link, a, b);
      pair.rx_budget = 100;
      ASSERT_TRUE(pair.run_until_idle(10000)) << n;
      EXPECT_TRUE(pair.a().closed() && pair.b().closed()) << n;
      EXPECT_FALSE(a.unparked || b.unparked) << n;
      EXPECT_LE(b.losses, 1U) << n;
      if (a.losses == 0) {
        EXPECT_EQ(a.received, a.to_send);
        EXPECT_EQ(a.eofs, 1U);
        EXPECT_GT(n, 1U) << "no fault was ever injected";
        break;
      }
      EXPECT_EQ(a.losses, 1U) << n;
      EXPECT_EQ(a.lost_reason, std::errc::timed_out) << n;
      EXPECT_LE(a.received.size(), 2000U) << n;
    }
  }
}

}  // namespace
}  // namespace iwarp::tcp_glue
