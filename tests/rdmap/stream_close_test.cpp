// The ends of an established stream: graceful from either side, Bad Close, Terminate, abort, time; memory that goes
// away in the middle; and that every request and every receive completes once whatever happens.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/rdmap/engine_pair.hpp"
#include "tests/rdmap/scripted_peer.hpp"
#include "tests/support/random.hpp"

namespace iwarp::stream_test {
namespace {

using mpa::disposition;
using rdmap::operation;
using rdmap::stream_event;
using rdmap::stream_state;
using rdmap::wr_status;
using namespace std::chrono_literals;

constexpr std::uint32_t shared = 0x11223344;
constexpr std::uint64_t base = 0x1000;
const std::vector<stream_event> ended{stream_event::disconnected, stream_event::closed};

// Graceful -----------------------------------------------------------------------------------------------------------

// VRB-04, RDMAP-71, MPA-80, DDP-41, DDP-46: from either side, from both at once; idle and with work queued on the side
// that closes.
TEST(Graceful, FromEitherSideOrBoth) {
  for (int who = 1; who <= 3; ++who) {
    for (const int work : {0, 1, 50}) {
      if (who == 3 && work != 0) continue;  // then each is behind the other's FIN: see BadClose
      engine_pair pair;
      pair.connect();
      region& own = pair.a.user.add(30'000);
      region& lent = pair.b.user.add(30'000, {.remote_read = true, .remote_write = true});
      pair.a.write(own.element(0, 1), {lent.key, lent.base});  // opens b's transmit side
      pair.settle();
      stream_side& closing = who == 2 ? pair.b : pair.a;
      stream_side& other = who == 2 ? pair.a : pair.b;
      region& from = closing.user.add(30'000);
      region& into = other.user.add(30'000, {.remote_read = true, .remote_write = true});
      fill(from.bytes(), 3);
      for (int i = 0; i < work; ++i) {
        if (i % 3 == 0) {
          other.user.post_receive(into);
          closing.send(from.element(0, 30'000));
        } else if (i % 3 == 1) {
          closing.write(from.element(0, 30'000), {into.key, into.base});
        } else {
          closing.read(from.element(0, 30'000), {into.key, into.base});
        }
      }
      closing.engine.close(closing.now);
      if (who == 3) other.engine.close(other.now);
      pair.settle();
      for (stream_side* s : {&pair.a, &pair.b}) {
        s->poll();
        EXPECT_TRUE(s->told(stream_event::disconnected));
        EXPECT_TRUE(s->told(stream_event::closed));
        EXPECT_EQ(s->engine.error(), std::error_code{}) << s->engine.error().message();
        EXPECT_EQ(s->count(wr_status::success), s->posted());
        EXPECT_FALSE(s->engine.sent_terminate());
        EXPECT_EQ(s->engine.next_deadline(), never);
        EXPECT_FALSE(s->engine.needs_consumer());
      }
      EXPECT_TRUE(pair.runner.a().closed() && pair.runner.b().closed());
      EXPECT_FALSE(pair.link.calls(engine_pair::link_side::a).aborted);
      EXPECT_FALSE(pair.link.calls(engine_pair::link_side::b).aborted);
      if (work != 0) {
        EXPECT_TRUE(into.copy() == from.copy());
      }
    }
  }
}

// What the peer asked for before is answered before FIN.
TEST(Graceful, AnswersReadsFirst) {
  scripted_peer peer;
  region& lent = peer.side.user.add(9000, {.remote_read = true}, shared, base);
  peer.open();
  peer.send(read_request_segment(1, {.sink = 5, .size = 9000, .source = shared, .source_offset = base}));
  octets out = peer.drain(1000);
  peer.side.engine.close(peer.side.now);
  EXPECT_EQ(peer.side.engine.wants(), disposition::keep);
  peer.send(read_request_segment(2, {.sink = 6, .size = 9, .source = shared, .source_offset = base}));
  out = std::move(out) + peer.drain();
  EXPECT_EQ(peer.splitter.split(out).size(), 8u);
  EXPECT_EQ(peer.side.engine.wants(), disposition::shutdown_write);
  EXPECT_EQ(lent.pins, 0);
  peer.eof();
  EXPECT_EQ(peer.side.poll(), ended);
  EXPECT_EQ(peer.side.engine.wants(), disposition::close);
}

// FIN only when TCP took the last octet; the receive under way completes before the end.
TEST(Graceful, WaitsForEverything) {
  scripted_peer peer;
  region& own = peer.side.user.add(5000);
  region& into = peer.side.user.add(64);
  peer.side.user.post_receive(into);
  peer.open();
  peer.side.send(own.element(0, 5000));
  peer.side.read(own.element(0, 8), {stag{1}, 0});
  peer.side.engine.close(peer.side.now);
  EXPECT_EQ(peer.side.engine.state(), stream_state::closing);
  peer.drain(100);
  EXPECT_EQ(peer.side.engine.wants(), disposition::keep);
  peer.drain();
  EXPECT_EQ(peer.side.engine.wants(), disposition::keep) << "the Read is outstanding";
  peer.send(segment(untagged{}, pattern(8, 1)));
  peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(8)));
  EXPECT_EQ(peer.side.engine.wants(), disposition::shutdown_write);
  EXPECT_TRUE(peer.side.poll().empty());
  peer.eof();
  EXPECT_EQ(peer.side.poll(), ended);
  EXPECT_EQ(peer.side.count(wr_status::success), 2u);
  EXPECT_EQ(peer.side.user.receives.size(), 1u);
}

// DDP-41: a request posted after close() is flushed, behind those before it, which are carried out.
TEST(Graceful, LateRequestsAreFlushedInTheirTurn) {
  scripted_peer peer;
  region& own = peer.side.user.add(64);
  peer.open();
  peer.side.send(own.element(0, 64));
  peer.side.engine.close(peer.side.now);
  peer.side.send(own.element(0, 64));
  peer.side.write(own.element(0, 64), {stag{1}, 0});
  EXPECT_TRUE(peer.side.user.sends.empty());
  EXPECT_EQ(peer.take().size(), 1u);
  EXPECT_EQ(peer.side.user.sends, (std::vector{wr_status::success, wr_status::flushed, wr_status::flushed}));
  EXPECT_EQ(peer.side.engine.wants(), disposition::shutdown_write);
  peer.eof();
  EXPECT_EQ(peer.side.engine.error(), std::error_code{});
}

// A responder that closes before the first FPDU sends nothing but FIN.
TEST(Graceful, BeforeTheFirstFpdu) {
  for (const bool peer_to_peer : {false, true}) {
    scripted_peer peer({.peer_to_peer = peer_to_peer, .rtr = {.write = true}});
    region& own = peer.side.user.add(64);
    peer.start();
    peer.side.send(own.element(0, 64));
    peer.side.engine.close(peer.side.now);
    EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
    EXPECT_TRUE(peer.drain().empty());
    EXPECT_EQ(peer.side.engine.wants(), disposition::shutdown_write);
    peer.eof();
    peer.side.poll();
    EXPECT_EQ(peer.side.told(stream_event::failed), peer_to_peer);
    EXPECT_EQ(peer.side.told(stream_event::disconnected), !peer_to_peer);
    EXPECT_TRUE(peer.side.told(stream_event::closed));
  }
}

// The initiator closes at once: the RTR it owes goes first.
TEST(Graceful, BehindTheRtr) {
  for (const mpa::rtr_set kind :
       {mpa::rtr_set{.send = true}, mpa::rtr_set{.write = true}, mpa::rtr_set{.read = true}}) {
    pair_options options;
    options.a.startup.peer_to_peer = true;
    options.a.startup.rtr = kind;
    engine_pair pair(options);
    bool once = true;
    const auto step = pair.runner.on_step;
    pair.runner.on_step = [&] {
      const bool moved = step();
      if (pair.a.told(stream_event::established) && std::exchange(once, false)) {
        pair.a.engine.close(pair.a.now);
        return true;
      }
      return moved;
    };
    pair.try_connect();
    pair.settle();
    EXPECT_TRUE(pair.b.told(stream_event::established));
    EXPECT_TRUE(pair.b.told(stream_event::closed));
    EXPECT_TRUE(pair.a.told(stream_event::closed));
    EXPECT_EQ(pair.a.engine.error(), std::error_code{}) << pair.a.engine.error().message();
    EXPECT_EQ(pair.b.engine.error(), std::error_code{}) << pair.b.engine.error().message();
  }
}

TEST(Graceful, TwiceIsOnce) {
  scripted_peer peer;
  peer.open();
  peer.side.engine.close(peer.side.now);
  peer.side.engine.close(peer.side.now);
  peer.eof();
  peer.side.engine.close(peer.side.now);
  EXPECT_EQ(peer.side.poll(), ended);
}

// The peer's FIN -----------------------------------------------------------------------------------------------------

TEST(PeerFin, IdleIsGraceful) {  // VRB-04
  for (const bool opened : {false, true}) {
    scripted_peer peer;
    opened ? peer.open() : peer.start();
    peer.eof();
    EXPECT_EQ(peer.side.poll(), ended);
    EXPECT_EQ(peer.side.engine.error(), std::error_code{});
    EXPECT_EQ(peer.side.engine.wants(), disposition::close);
    EXPECT_TRUE(peer.drain().empty());
  }
}

// E40, VRB-05, MPA-81: with work of any kind outstanding.
TEST(PeerFin, WithWorkOutstanding) {
  for (int work = 0; work < 6; ++work) {
    SCOPED_TRACE(work);
    scripted_peer peer;
    region& own = peer.side.user.add(5000, {.remote_read = true, .remote_write = true}, shared, base);
    region& into = peer.side.user.add(64);
    peer.side.user.post_receive(into);
    peer.open();
    switch (work) {
      case 0:
        peer.side.send(own.element(0, 5000));  // not begun
        break;
      case 1:
        peer.side.read(own.element(0, 8), {stag{1}, 0});
        peer.take();
        break;
      case 2:  // asked for and not answered
        peer.send(read_request_segment(1, {.sink = 6, .size = 4000, .source = shared, .source_offset = base}));
        break;
      case 3:  // half a message
        peer.send(segment(untagged{.last = false}, octets(8)));
        break;
      case 4:  // half a Write
        peer.send(segment(tagged{.stag = shared, .offset = base, .last = false}, octets(8)));
        break;
      default:  // the same, while closing
        peer.side.read(own.element(0, 8), {stag{1}, 0});
        peer.take();
        peer.side.engine.close(peer.side.now);
        break;
    }
    peer.eof();
    peer.expect_terminate(terminate_segment(0x02, 7));
    EXPECT_EQ(peer.side.poll(), ended) << "both FINs are there: no time to wait for";
    EXPECT_EQ(peer.side.engine.wants(), disposition::close);
    EXPECT_EQ(peer.side.engine.error(), rdmap::errc::peer_closed_with_work);
    EXPECT_EQ(peer.side.count(wr_status::flushed), peer.side.posted());
  }
}

// Half of a Send is under way when FIN comes: what is framed goes out whole, then the Terminate.
TEST(PeerFin, InTheMiddleOfASend) {
  scripted_peer peer;
  region& own = peer.side.user.add(5000);
  fill(own.bytes(), 1);
  peer.open();
  peer.side.send(own.element(0, 5000));
  octets out = peer.drain(2000);
  peer.eof();
  const octets sent = own.copy();
  std::ranges::fill(own.bytes(), std::byte{0xEE});  // it was flushed: the memory is the consumer's again
  out = std::move(out) + peer.drain();
  const auto units = peer.splitter.split(out);
  ASSERT_EQ(units.size(), 5u);
  EXPECT_EQ(units.back(), terminate_segment(0x02, 7));
  EXPECT_EQ(octets(units[3].begin() + 18, units[3].end()), octets(sent.begin() + 3 * 1424, sent.end()));
}

// Bad Close ----------------------------------------------------------------------------------------------------------

// VRB-06: behind the own FIN neither a request nor a segment of the peer is carried out.
TEST(BadClose, ARequestBehindFin) {
  scripted_peer peer;
  region& own = peer.side.user.add(64);
  peer.open();
  peer.side.engine.close(peer.side.now);
  EXPECT_EQ(peer.side.engine.wants(), disposition::shutdown_write);
  peer.side.send(own.element(0, 64));
  peer.expect_reset();
  EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
  EXPECT_EQ(peer.side.poll(), ended);
  EXPECT_EQ(peer.side.engine.error(), rdmap::errc::stream_catastrophic);
}

TEST(BadClose, ASegmentBehindFin) {
  for (const octets& unit : {segment(untagged{}, octets(4)), segment(tagged{.stag = shared, .offset = base}, octets(4)),
                             read_request_segment(1, {}), octets{}, octets(1)}) {
    scripted_peer peer;
    region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
    region& into = peer.side.user.add(64);
    peer.side.user.post_receive(into);
    peer.open();
    std::ranges::fill(target.bytes(), std::byte{1});
    peer.side.engine.close(peer.side.now);
    peer.send(unit);
    peer.expect_reset();
    EXPECT_EQ(target.copy(), octets(64, std::byte{1})) << "not processed";
    EXPECT_EQ(peer.side.user.receives_taken(), 0u);
    EXPECT_EQ(peer.side.poll(), ended);
    EXPECT_EQ(peer.side.engine.error(), rdmap::errc::stream_catastrophic);
  }
}

TEST(BadClose, ATerminateBehindFinIsRead) {
  scripted_peer peer;
  peer.open();
  peer.side.engine.close(peer.side.now);
  peer.send(terminate_segment(0x02, 7));
  EXPECT_TRUE(peer.side.engine.received_terminate());
  EXPECT_EQ(peer.side.poll(), ended);
  EXPECT_EQ(peer.side.engine.error(), rdmap::errc::terminated_by_peer);
}

// Time ---------------------------------------------------------------------------------------------------------------

// VRB-07: Closing is left in bounded time, whether the peer does not finish or TCP takes nothing.
TEST(Timeouts, OfClosing) {
  for (const bool stuck : {false, true}) {
    scripted_peer peer;
    region& own = peer.side.user.add(64);
    peer.open();
    peer.side.send(own.element(0, 64));
    peer.side.engine.close(peer.side.now);
    if (!stuck) peer.drain();
    peer.pass(5s - 1ns);
    EXPECT_EQ(peer.side.engine.state(), stream_state::closing);
    peer.pass(1ns);
    peer.expect_reset();
    EXPECT_EQ(peer.side.poll(), ended);
    EXPECT_EQ(peer.side.engine.error(), mpa::errc::tcp_lost);
    EXPECT_EQ(peer.side.user.sends, std::vector{stuck ? wr_status::flushed : wr_status::success});
  }
}

// VRB-07, RDMAP-66: so is Terminate. When TCP took it the connection ends gracefully, so that no reset destroys it.
TEST(Timeouts, OfTerminating) {
  for (const bool stuck : {false, true}) {
    scripted_peer peer;
    peer.open();
    peer.side.engine.terminate({}, peer.side.now);
    if (!stuck) {
      EXPECT_EQ(peer.take().size(), 1u);
    }
    peer.pass(1s - 1ns);
    EXPECT_EQ(peer.side.engine.state(), stream_state::terminating);
    peer.pass(1ns);
    EXPECT_EQ(peer.side.engine.state(), stream_state::closed);
    EXPECT_EQ(peer.side.engine.wants(), stuck ? disposition::abort : disposition::close);
    EXPECT_EQ(peer.side.poll(), ended);
  }
}

// FIN of the peer before TCP took the Terminate: it still goes out.
TEST(Terminating, FinBeforeItIsSent) {
  scripted_peer peer;
  peer.open();
  peer.side.engine.terminate({}, peer.side.now);
  peer.eof();
  EXPECT_EQ(peer.side.engine.state(), stream_state::terminating);
  peer.expect_terminate(terminate_segment(0, 0));
  EXPECT_EQ(peer.side.engine.state(), stream_state::closed);
  EXPECT_EQ(peer.side.engine.wants(), disposition::close);
}

TEST(Terminating, ResetChangesNothingButTheState) {
  scripted_peer peer;
  peer.open();
  peer.side.engine.terminate({}, peer.side.now);
  peer.lose();
  EXPECT_EQ(peer.side.poll(), ended);
  EXPECT_EQ(peer.side.engine.error(), rdmap::errc::local_catastrophic) << "the first cause wins";
}

// Field fault B025, VRB-08: what is posted after the end is flushed at once, in order.
TEST(Ended, RequestsAreFlushedAtOnce) {
  for (int how = 0; how < 4; ++how) {
    scripted_peer peer;
    region& own = peer.side.user.add(64);
    peer.open();
    peer.side.send(own.element(0, 64));
    if (how == 0) peer.side.engine.abort(peer.side.now);
    if (how == 1) peer.side.engine.terminate({}, peer.side.now);
    if (how == 2) peer.lose();
    if (how == 3) peer.send(terminate_segment(0x02, 7));
    EXPECT_EQ(peer.side.user.sends.size(), 1u);
    for (std::size_t i = 2; i <= 300; ++i) {
      peer.side.send(own.element(0, 64));
      ASSERT_EQ(peer.side.user.sends.size(), i);
    }
    EXPECT_EQ(peer.side.count(wr_status::flushed), 300u);
  }
}

// VRB-03: abort is a reset without a Terminate; from every state, twice too.
TEST(Abort, Resets) {
  for (int state = 0; state < 5; ++state) {
    scripted_peer peer;
    peer.start();
    region& own = peer.side.user.add(5000);
    if (state > 0) peer.send(segment(tagged{}));
    peer.side.send(own.element(0, 5000));
    if (state == 2) peer.drain(100);
    if (state == 3) peer.side.engine.close(peer.side.now);
    if (state == 4) peer.side.engine.terminate({}, peer.side.now);
    peer.side.engine.abort(peer.side.now);
    peer.side.engine.abort(peer.side.now);
    peer.expect_reset();
    EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
    peer.side.poll();
    EXPECT_TRUE(peer.side.told(stream_event::disconnected));
    EXPECT_TRUE(peer.side.told(stream_event::closed));
  }
}

// After a graceful end whose last octets TCP does not take, abort still resets.
TEST(Abort, AfterTheEnd) {
  scripted_peer peer;
  peer.open();
  peer.eof();
  EXPECT_EQ(peer.side.engine.wants(), disposition::close);
  peer.side.engine.abort(peer.side.now);
  EXPECT_EQ(peer.side.engine.wants(), disposition::abort);
}

// Memory that goes away ----------------------------------------------------------------------------------------------

// SEC-07: what is queued from a region is copied when the region goes, what is not cut yet fails.
TEST(Detach, WhileSending) {
  for (const bool all_framed : {false, true}) {
    scripted_peer peer;
    const std::size_t size = all_framed ? 50'000 : 2'000'000;
    region& own = peer.side.user.add(size);
    fill(own.bytes(), 5);
    const octets sent = own.copy();
    peer.open();
    peer.side.send(own.element(0, size));
    octets out = peer.drain(30'000);
    own.valid = false;
    peer.side.engine.detach(own.bytes(), peer.side.now);
    std::ranges::fill(own.bytes(), std::byte{0xEE});
    out = std::move(out) + peer.drain();
    const auto units = peer.splitter.split(out);
    EXPECT_EQ(peer.splitter.rest(), 0u);
    octets got;
    for (const octets& u : units) {
      if (u[1] == std::byte{0x43}) got.insert(got.end(), u.begin() + 18, u.end());
    }
    EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
    if (all_framed) {
      EXPECT_EQ(got.size(), size);
      EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::success});
    } else {
      EXPECT_LT(got.size(), size);
      EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::local_protection});
      EXPECT_EQ(units.back(), terminate_segment(0, 0));
    }
  }
}

TEST(Detach, WhileReceiving) {
  scripted_peer peer;
  region& into = peer.side.user.add(300);
  region& other = peer.side.user.add(300);
  peer.side.user.post_receive({other.element(0, 10), into.element(0, 0), into.element(0, 100)});
  peer.open();
  peer.send(segment(untagged{.last = false}, pattern(20, 1)));
  region& unrelated = peer.side.user.add(300);
  peer.side.engine.detach(unrelated.bytes(), peer.side.now);
  EXPECT_FALSE(peer.side.engine.ended());
  into.valid = false;
  peer.side.engine.detach(into.bytes(), peer.side.now);
  std::ranges::fill(into.bytes(), std::byte{0xEE});
  peer.expect_terminate(terminate_segment(0, 0));
  peer.send(segment(untagged{.offset = 20}, pattern(20, 1)));
  EXPECT_EQ(into.copy(), octets(300, std::byte{0xEE}));
  ASSERT_EQ(peer.side.user.receives.size(), 1u);
  EXPECT_EQ(peer.side.user.receives[0].result.status, wr_status::local_protection);
}

// DDP-49: the sink of a Read that is under way, and the target of a Write between two segments.
TEST(Detach, OfTaggedTargets) {
  for (const bool read : {false, true}) {
    scripted_peer peer;
    region& target = peer.side.user.add(300, {.remote_write = true}, shared);
    peer.open();
    if (read) {
      peer.side.read(target.element(0, 200), {stag{1}, 0});
      peer.take();
    }
    const std::uint8_t op = read ? 2 : 0;
    peer.send(segment(tagged{.op = op, .stag = shared, .offset = target.base, .last = false}, pattern(100, 1)));
    EXPECT_EQ(target.copy(0, 100), pattern(100, 1));
    target.valid = false;
    peer.side.engine.detach(target.bytes(), peer.side.now);
    const octets next = segment(tagged{.op = op, .stag = shared, .offset = target.base + 100}, pattern(100, 1));
    peer.send(next);
    EXPECT_EQ(target.copy(100, 200), octets(200));
    peer.expect_terminate(terminate_segment(0x11, 0, next));
    if (read) {
      EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::bad_response});
    }
  }
}

// Faults of the link -------------------------------------------------------------------------------------------------

// MPA-74, VRB-08, VRB-36; field faults B065, B125: the connection is cut, or one side's octets end, at each of many
// offsets of a conversation in which everything is under way. Each request and receive completes once, both sides learn
// of the end once and in bounded time.
class EveryFault : public testing::TestWithParam<int> {};

TEST_P(EveryFault, CompletesEverythingOnce) {
  for (std::uint64_t at = 0; at < 9000; at += at < 300 ? 1 : 37) {
    engine_pair pair;
    for (const auto side : {engine_pair::link_side::a, engine_pair::link_side::b}) {
      pair.link.script_of(side).capacity = 3000;
      pair.link.script_of(side).read_limit = 700;
    }
    auto& script = pair.link.script_of(at % 2 == 0 ? engine_pair::link_side::a : engine_pair::link_side::b);
    switch (GetParam()) {
      case 0:
        script.cut_at = at;
        break;
      case 1:
        script.eof_at = at;
        break;
      case 2:
        script.damages.push_back({.offset = at, .mask = std::byte{0x10}});
        break;
      case 3:
        script.fail_read = at / 37 + 1;
        break;
      default:
        script.fail_write = at / 37 + 1;
        break;
    }
    pair.try_connect();
    region& own_a = pair.a.user.add(4000, {.remote_read = true, .remote_write = true});
    region& own_b = pair.b.user.add(4000, {.remote_read = true, .remote_write = true});
    for (int i = 0; i < 3; ++i) {
      for (auto [mine, other, from, to] :
           {std::tuple{&pair.a, &pair.b, &own_a, &own_b}, std::tuple{&pair.b, &pair.a, &own_b, &own_a}}) {
        other->user.post_receive(*to);
        mine->send(from->element(0, 1500));
        mine->write(from->element(0, 300), {to->key, to->base});
        mine->read(from->element(0, 900), {to->key, to->base});
      }
    }
    pair.settle();
    // An end that the fault did not bring: both close.
    pair.a.engine.close(pair.a.now);
    pair.b.engine.close(pair.b.now);
    pair.run_out();
    for (stream_side* s : {&pair.a, &pair.b}) {
      s->poll();
      ASSERT_EQ(s->outstanding(), 0u) << "at " << at;
      ASSERT_EQ(s->user.receives.size(), s->user.receives_taken()) << "at " << at;
      ASSERT_EQ(s->engine.state(), stream_state::closed) << "at " << at;
      ASSERT_TRUE(s->told(stream_event::closed));
      ASSERT_NE(s->told(stream_event::failed), s->told(stream_event::disconnected)) << "at " << at;
      std::size_t blamed = 0;  // VRB-09
      for (const auto status : s->user.sends) blamed += status != wr_status::success && status != wr_status::flushed;
      for (const auto& done : s->user.receives) {
        blamed += done.result.status != wr_status::success && done.result.status != wr_status::flushed;
      }
      ASSERT_LE(blamed, 1u);
    }
    ASSERT_FALSE(HasFailure()) << "at " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Links, EveryFault, testing::Range(0, 5));

}  // namespace
}  // namespace iwarp::stream_test
