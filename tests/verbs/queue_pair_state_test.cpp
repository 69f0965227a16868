// States of a queue pair and everything that ends one: disconnect, abort, reset, destruction, the peer's end, in each
// state; flushing exactly once and in order; connecting again; connections that linger when their queue pair is gone.
#include "tests/support/random.hpp"
#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;
using verbs::opcode;
using verbs::qp_state;
using verbs::status;

class VerbsQueuePair : public testing::TestWithParam<setup> {};
INSTANTIATE_TEST_SUITE_P(Progress, VerbsQueuePair, testing::ValuesIn(all_setups()), setup_name);

std::error_code error_of(const result<>& r) { return r ? std::error_code{} : r.error(); }

// VRB-01, VRB-39: what is not allowed in a state is refused at once and changes nothing.
TEST_P(VerbsQueuePair, RefusesWhatItsStateDoesNotAllow) {
  node n(GetParam());
  side s(n);
  const verbs::endpoint nowhere{boost::asio::ip::address_v4::loopback(), 1};
  EXPECT_EQ(s.qp.state(), qp_state::idle);
  EXPECT_EQ(error_of(s.qp.post_send({})), verbs::errc::not_connected);
  EXPECT_EQ(error_of(s.qp.disconnect()), verbs::errc::not_connected);
  EXPECT_TRUE(s.qp.reset());  // idle is where it leads
  EXPECT_EQ(s.qp.ird(), 0);
  EXPECT_EQ(s.qp.ord(), 0);
  EXPECT_FALSE(s.qp.held());
  EXPECT_EQ(s.qp.state(), qp_state::idle);

  s.qp.abort();
  EXPECT_EQ(s.qp.state(), qp_state::error);
  EXPECT_EQ(error_of(s.qp.connect(nowhere)), verbs::errc::wrong_state);
  EXPECT_EQ(error_of(s.qp.disconnect()), verbs::errc::not_connected);
  EXPECT_TRUE(s.qp.reset());
  EXPECT_EQ(s.qp.state(), qp_state::idle);
  EXPECT_TRUE(stays_quiet(s.channel)) << "nothing was connected, so nothing ended";

  connected_pair pair(GetParam());
  for (side* each : {&pair.client, &pair.server}) {
    EXPECT_EQ(each->qp.state(), qp_state::rts);
    EXPECT_EQ(error_of(each->qp.connect(nowhere)), verbs::errc::already_connected);
    EXPECT_EQ(error_of(each->qp.reset()), verbs::errc::wrong_state);
    EXPECT_EQ(each->qp.state(), qp_state::rts);
  }
  EXPECT_EQ(error_of(pair.server.qp.accept(pair.request.request)), verbs::errc::no_such_request) << "answered already";
  EXPECT_EQ(error_of(verbs::reject(pair.request.request)), verbs::errc::no_such_request);
  pair.client.write(1, 0, 100, pair.server.region.remote());
  pair.client.expect(1);
}

// Arguments out of range are refused before anything happens (VERBS s8.3.1; field faults B017, B080, B085, B092).
TEST(VerbsQueuePairArguments, OutOfRangeIsRefused) {
  node n;
  side s(n);
  const auto made = [&](const verbs::queue_pair_options& options) {
    const auto r = verbs::queue_pair::create(n.pd, s.cq, s.cq, s.channel, options);
    return r ? std::error_code{} : r.error();
  };
  EXPECT_EQ(made({.max_send_requests = 0}), verbs::errc::invalid_depth);
  EXPECT_EQ(made({.max_send_requests = verbs::max_queue_depth + 1}), verbs::errc::invalid_depth);
  EXPECT_EQ(made({.max_receive_requests = verbs::max_queue_depth + 1}), verbs::errc::invalid_depth);
  EXPECT_EQ(made({.max_send_sge = 0}), verbs::errc::invalid_sge_count);
  EXPECT_EQ(made({.max_send_sge = verbs::max_sge + 1}), verbs::errc::invalid_sge_count);
  EXPECT_EQ(made({.max_receive_sge = 0}), verbs::errc::invalid_sge_count);
  EXPECT_EQ(made({.max_receive_sge = ~0u}), verbs::errc::invalid_sge_count);
  EXPECT_EQ(made({.max_inline = verbs::max_inline + 1}), verbs::errc::invalid_length);
  EXPECT_EQ(made({.max_send_requests = 1,
                  .max_receive_requests = 0,
                  .max_send_sge = verbs::max_sge,
                  .max_receive_sge = verbs::max_sge,
                  .max_inline = verbs::max_inline}),
            std::error_code{});
  EXPECT_EQ(made({.max_send_requests = verbs::max_queue_depth, .max_receive_requests = 1, .max_send_sge = 1}),
            std::error_code{});

  auto none = verbs::queue_pair::create(n.pd, s.cq, s.cq, s.channel, {.max_receive_requests = 0});
  ASSERT_TRUE(none);
  EXPECT_EQ(error_of(none->post_receive({})), verbs::errc::queue_full);

  node other;
  const auto foreign_cq = *verbs::completion_queue::create(other.context, 4);
  const auto foreign_channel = *verbs::event_channel::create(other.context);
  EXPECT_EQ(verbs::queue_pair::create(n.pd, foreign_cq, s.cq, s.channel).error(), verbs::errc::wrong_context);
  EXPECT_EQ(verbs::queue_pair::create(n.pd, s.cq, foreign_cq, s.channel).error(), verbs::errc::wrong_context);
  EXPECT_EQ(verbs::queue_pair::create(n.pd, s.cq, s.cq, foreign_channel).error(), verbs::errc::wrong_context);
  EXPECT_EQ(verbs::queue_pair::create(other.pd, s.cq, s.cq, s.channel).error(), verbs::errc::wrong_context);

  const verbs::endpoint nowhere{boost::asio::ip::address_v4::loopback(), 1};
  const std::vector<std::byte> data(513);
  const auto refused = [&](const verbs::connect_options& options) { return error_of(s.qp.connect(nowhere, options)); };
  verbs::connect_options c;
  c.private_data = std::span(data).first(509);
  EXPECT_EQ(refused(c), verbs::errc::invalid_private_data);
  c.mpa_revision = 1;
  c.private_data = data;
  EXPECT_EQ(refused(c), verbs::errc::invalid_private_data);
  c = {};
  c.mpa_revision = 3;
  EXPECT_EQ(refused(c), verbs::errc::invalid_revision);
  c = {};
  c.mpa_revision = 1;
  c.peer_to_peer = true;
  EXPECT_EQ(refused(c), verbs::errc::invalid_revision);
  c = {};
  c.rtr_delay = -1ns;
  EXPECT_EQ(refused(c), verbs::errc::invalid_argument);
  c = {};
  c.ird = verbs::max_read_depth + 1;
  EXPECT_EQ(refused(c), verbs::errc::invalid_read_depth);
  c = {};
  c.ord = 0xFFFF;
  EXPECT_EQ(refused(c), verbs::errc::invalid_read_depth);
  c = {};
  c.max_ulpdu = 127;
  EXPECT_EQ(refused(c), verbs::errc::invalid_argument);
  c = {};
  c.close_timeout = -1ns;
  EXPECT_EQ(refused(c), verbs::errc::invalid_argument);
  EXPECT_EQ(s.qp.state(), qp_state::idle);

  EXPECT_EQ(verbs::context::create({.domains = 0}).error(), verbs::errc::invalid_argument);
  EXPECT_EQ(verbs::context::create({.domains = 65}).error(), verbs::errc::invalid_argument);
  EXPECT_EQ(verbs::context::create({.progress = verbs::progress_mode::manual}).error(), verbs::errc::invalid_argument);
  boost::asio::io_context io;
  EXPECT_EQ(verbs::context::create({.io = &io}).error(), verbs::errc::invalid_argument);
  EXPECT_TRUE(verbs::context::create({.domains = 64}));
}

// A Request is accepted by queue pairs of its own context alone; the refusal leaves it open.
TEST(VerbsQueuePairArguments, ARequestBelongsToItsContext) {
  node n, other;
  side server(n), stranger(other), client(other);
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback());
  ASSERT_TRUE(client.qp.connect(listener.local()));
  const auto request = next_event(listening);
  EXPECT_EQ(error_of(stranger.qp.accept(request.request)), verbs::errc::wrong_context);
  EXPECT_EQ(stranger.qp.state(), qp_state::idle);
  const std::vector<std::byte> long_data(509);
  EXPECT_EQ(error_of(server.qp.accept(request.request, {.private_data = long_data})),
            verbs::errc::invalid_private_data);
  EXPECT_EQ(error_of(server.qp.accept(request.request, {.ird = 0x3FFF})), verbs::errc::invalid_read_depth);
  EXPECT_EQ(error_of(verbs::reject(request.request, long_data)), verbs::errc::invalid_private_data);
  EXPECT_EQ(server.qp.state(), qp_state::idle);
  EXPECT_TRUE(server.qp.accept(request.request));
  client.expect(event_kind::established);
  EXPECT_EQ(error_of(server.qp.accept({})), verbs::errc::no_such_request);
}

// VRB-04, VRB-08, RDMAP-71: a graceful end carries out what was posted, flushes receives in order, and leaves both
// sides idle, with one event each and no reason.
TEST_P(VerbsQueuePair, DisconnectCarriesOutWhatWasPosted) {
  connected_pair pair(GetParam());
  for (std::uint64_t i = 0; i < 20; ++i) pair.server.receive(i, 0, 5000);
  for (std::uint64_t i = 0; i < 7; ++i) pair.client.receive(i, 0, 5000);
  for (std::uint64_t i = 0; i < 10; ++i) pair.client.send(i, 0, 5000);
  pair.client.read(10, 5000, 50000, pair.server.region.remote(60000));
  ASSERT_TRUE(pair.client.qp.disconnect());
  EXPECT_TRUE(pair.client.qp.disconnect()) << "closing already";
  for (std::uint64_t i = 0; i < 11; ++i) pair.client.expect(i);
  for (std::uint64_t i = 0; i < 7; ++i) pair.client.expect(i, status::flushed);
  for (std::uint64_t i = 0; i < 10; ++i) pair.server.expect(i);
  for (std::uint64_t i = 10; i < 20; ++i) pair.server.expect(i, status::flushed);
  for (side* s : {&pair.client, &pair.server}) {
    const auto e = s->expect(event_kind::disconnected);
    EXPECT_FALSE(e.reason) << e.reason_text;
    EXPECT_FALSE(e.sent_terminate || e.received_terminate);
    EXPECT_EQ(s->qp.state(), qp_state::idle);
    EXPECT_EQ(error_of(s->qp.post_send({})), verbs::errc::not_connected);
    EXPECT_TRUE(s->qp.disconnect()) << "field fault B178: no error when it is closed already";
    EXPECT_EQ(s->ledger.outstanding(), 0u);
    EXPECT_TRUE(stays_quiet(s->channel));
  }
}

// VRB-02, field fault B181: the same queue pairs connect again and again; sequence numbers, CRC and read queues start
// afresh, after a graceful end or, by reset(), after an error.
TEST_P(VerbsQueuePair, ConnectsAgainAndAgain) {
  connected_pair pair(GetParam());
  for (std::uint64_t round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    fill(pair.client.memory.bytes().first(3000), round);
    pair.server.receive(round, 0, 3000);
    pair.client.send(round, 0, 3000);
    pair.client.expect(round);
    pair.server.expect(round);
    EXPECT_TRUE(matches(pair.server.memory.bytes().first(3000), round));
    pair.server.read(100 + round, 4000, 3000, pair.client.region.remote(0));
    pair.server.expect(100 + round);
    if (round % 2 == 0) {
      pair.disconnect();
    } else {
      (round % 4 == 1 ? pair.client : pair.server).qp.abort();
      for (side* s : {&pair.client, &pair.server}) {
        EXPECT_TRUE(s->expect(event_kind::disconnected).reason);
        ASSERT_TRUE(s->wait_state(qp_state::error));
        ASSERT_TRUE(wait_until([&] { return s->qp.reset().has_value(); }));
        EXPECT_EQ(s->qp.state(), qp_state::idle);
        s->ledger.forgive();
      }
    }
    pair.connect();
  }
}

// VRB-03, VRB-08, VRB-09, RDMAP-67, field faults B025, B034, B065, B179: abort() resets without Terminate and flushes
// everything once and in order; what is posted afterwards is flushed behind it.
TEST_P(VerbsQueuePair, AbortFlushesEverythingOnceAndInOrder) {
  pair_options options{.how = GetParam()};
  options.connect.ord = 1;
  connected_pair pair(options);
  side& client = pair.client;
  side& server = pair.server;
  for (std::uint64_t i = 0; i < 30; ++i) client.receive(i, 0, 100);
  for (std::uint64_t i = 0; i < 10; ++i) server.receive(i, 0, 100);
  // No receive of the server takes more than its 10: from the eleventh on the Sends stay in TCP, then in the queue.
  std::uint64_t sent = 0;
  for (; sent < 100; ++sent) client.send(sent, 0, 100, sent % 4 == 0);
  client.qp.abort();
  EXPECT_EQ(client.qp.state(), qp_state::error);
  for (std::uint64_t i = 0; i < 5; ++i) {
    client.send(100 + i, 0, 100, i % 2 == 0);
    client.receive(30 + i, 0, 100);
  }
  ASSERT_TRUE(client.settle());
  std::uint64_t receives = 0;
  for (const auto& c : client.arrived) {
    if (c.kind == verbs::completion_kind::receive) {
      EXPECT_EQ(c.status, status::flushed);
      EXPECT_EQ(c.id, receives++);
    } else if (c.id >= 100) {
      EXPECT_EQ(c.status, status::flushed);
    }
  }
  EXPECT_EQ(receives, 35u);
  const auto here = client.expect(event_kind::disconnected);
  EXPECT_EQ(here.reason, std::errc::connection_aborted);
  EXPECT_FALSE(here.sent_terminate || here.received_terminate);
  const auto there = server.expect(event_kind::disconnected);
  EXPECT_EQ(there.reason, mpa::errc::tcp_lost);
  EXPECT_FALSE(there.sent_terminate || there.received_terminate);
  ASSERT_TRUE(server.settle());
  // Error -> Idle, and nothing of the old life comes back.
  ASSERT_TRUE(client.qp.reset());
  ASSERT_TRUE(server.qp.reset());
  client.arrived.clear();
  server.arrived.clear();
  pair.connect();
  server.receive(1000, 0, 100);
  client.send(1000, 0, 100);
  client.expect(1000);
  server.expect(1000);
}

// A queue pair in error that never had a connection flushes as well (field fault B025).
TEST_P(VerbsQueuePair, ErrorWithoutAConnectionFlushes) {
  node n(GetParam());
  side s(n);
  for (std::uint64_t i = 0; i < 3; ++i) s.receive(i, 0, 10);
  s.qp.abort();
  for (std::uint64_t i = 0; i < 3; ++i) s.expect(i, status::flushed);
  for (std::uint64_t i = 10; i < 300; ++i) {  // more often than the queue is deep: slots come back
    s.send(i, 0, 10);
    s.receive(i, 0, 10);
    s.expect(i, status::flushed);
    s.expect(i, status::flushed);
  }
  ASSERT_TRUE(s.qp.reset());
  s.receive(400, 0, 10);
  s.poll();
  EXPECT_TRUE(s.arrived.empty()) << "idle: nothing is flushed";
  EXPECT_EQ(error_of(s.qp.post_send({})), verbs::errc::not_connected);
}

// VRB-05, RDMAP-65, RDMAP-66, E40: FIN of a peer while work is outstanding is a "bad LLP close".
TEST(VerbsQueuePairEnd, FinWithOutstandingWorkIsTerminated) {
  node n;
  side s(n);
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  s.read(1, 0, 100, {stag{0x1234}, 0});  // never answered
  ASSERT_TRUE(peer.ulpdu());
  peer.socket.fin();
  const auto t = peer.terminate();
  ASSERT_TRUE(t);
  EXPECT_EQ(t->code, (rdmap::term_code{0, 2, 7}));
  s.expect(1, status::flushed);
  const auto e = s.expect(event_kind::disconnected);
  EXPECT_EQ(e.reason, rdmap::errc::peer_closed_with_work);
  EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  EXPECT_TRUE(s.wait_state(qp_state::error));                           // VRB-07
  EXPECT_EQ(s.qp.sent_terminate()->code, (rdmap::term_code{0, 2, 7}));  // VRB-11
  EXPECT_FALSE(s.qp.received_terminate());
}

// VRB-06: a Send posted while closing is a "Bad Close": flushed, connection reset, error.
TEST(VerbsQueuePairEnd, PostingWhileClosingIsABadClose) {
  node n;
  side s(n);
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  ASSERT_TRUE(s.qp.disconnect());
  EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  EXPECT_EQ(s.qp.state(), qp_state::closing);
  s.send(1, 0, 10);
  s.expect(1, status::flushed);
  EXPECT_TRUE(s.expect(event_kind::disconnected).reason);
  EXPECT_EQ(s.qp.state(), qp_state::error);
  EXPECT_FALSE(peer.socket.send(pattern(1, 1)) && peer.socket.send(pattern(1, 1)) &&
               peer.socket.wait_end(1s) == raw_socket::ending::none);
}

// VRB-06: an FPDU behind our FIN is not processed.
TEST(VerbsQueuePairEnd, SegmentsWhileClosingAreABadClose) {
  node n;
  side s(n);
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  std::ranges::fill(s.memory.bytes(), std::byte{0x11});
  ASSERT_TRUE(s.qp.disconnect());
  EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  const auto to = s.region.remote();
  peer.send_ulpdu(tagged(rdmap::opcode::write, to.key, to.offset, pattern(100, 1)));
  EXPECT_TRUE(s.expect(event_kind::disconnected).reason);
  EXPECT_TRUE(s.wait_state(qp_state::error));
  EXPECT_TRUE(all_are(s.memory.bytes(), std::byte{0x11}));
}

// VRB-07: a peer that never closes its half does not keep the queue pair.
TEST(VerbsQueuePairEnd, ClosingEndsInBoundedTime) {
  node n;
  side s(n);
  raw_listener listener;
  verbs::connect_options options;
  options.close_timeout = 50ms;
  ASSERT_TRUE(s.qp.connect(listener.local(), options));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  s.receive(1, 0, 10);
  ASSERT_TRUE(s.qp.disconnect());
  EXPECT_EQ(s.expect(event_kind::disconnected).reason, mpa::errc::tcp_lost);
  s.expect(1, status::flushed);
  EXPECT_EQ(s.qp.state(), qp_state::error);
}

// VRB-12, field faults B013, B071, B142, B163: destruction in every state, with work of every kind under way. Nothing
// of it comes afterwards, neither completion nor event, and its memory is left alone.
TEST_P(VerbsQueuePair, IsDestroyedInEveryState) {
  for (int state = 0; state < 9; ++state) {
    SCOPED_TRACE(state);
    connected_pair pair(GetParam());
    side& s = state % 2 == 0 ? pair.client : pair.server;
    side& other = state % 2 == 0 ? pair.server : pair.client;
    for (std::uint64_t i = 0; i < 20; ++i) s.receive(i, 0, 1000);
    for (std::uint64_t i = 0; i < 5; ++i) other.receive(i, 100000, 1000);
    switch (state) {
      case 0:
      case 1:
        break;
      case 2:  // requests in every stage
      case 3:
        for (std::uint64_t i = 0; i < 30; ++i) s.send(i, 1000, 1000);
        for (std::uint64_t i = 30; i < 60; ++i) s.read(i, 0, 100000, other.region.remote());
        for (std::uint64_t i = 0; i < 5; ++i) other.write(i, 0, 100000, s.region.remote(100000));
        break;
      case 4:
        ASSERT_TRUE(s.qp.disconnect());
        break;
      case 5:
        ASSERT_TRUE(other.qp.disconnect());
        break;
      case 6:
        other.qp.abort();
        break;
      case 7:
        s.qp.abort();
        break;
      case 8:  // a Terminate on its way
        other.write(1, 0, 10, {stag{0x99}, 0});
        s.poll();
        break;
    }
    s.qp = {};
    s.memory.forbid();
    EXPECT_TRUE(poll_poisoned(s.cq).empty());
    while (s.channel.poll()) {
    }
    const auto e = other.expect(event_kind::disconnected);
    EXPECT_TRUE(stays_quiet(s.channel, 5ms));
    EXPECT_TRUE(poll_poisoned(s.cq).empty());
    EXPECT_TRUE(other.settle());
    s.memory.allow();
    s.region = {};
  }
}

// Destruction while TCP or MPA start-up is under way; nobody is told, nothing is left.
TEST_P(VerbsQueuePair, IsDestroyedWhileItConnects) {
  node n(GetParam());
  raw_listener silent(GetParam().v6);
  for (int stage = 0; stage < 3; ++stage) {
    side s(n);
    ASSERT_TRUE(s.qp.connect(silent.local()));
    EXPECT_EQ(s.qp.state(), qp_state::connecting);
    EXPECT_EQ(error_of(s.qp.post_send({})), verbs::errc::not_connected);
    EXPECT_EQ(error_of(s.qp.disconnect()), verbs::errc::not_connected);
    EXPECT_EQ(error_of(s.qp.connect(silent.local())), verbs::errc::already_connected);
    EXPECT_EQ(error_of(s.qp.reset()), verbs::errc::wrong_state);
    raw_socket accepted;
    if (stage > 0) accepted = silent.accept();
    if (stage > 1) {
      ASSERT_TRUE(wait_until([&] { return s.qp.counters().octets_out == 0 && s.qp.state() == qp_state::connecting; }));
    }
    s.qp = {};
    EXPECT_TRUE(stays_quiet(s.channel, 5ms));
    if (stage == 0) accepted = silent.accept();
    ASSERT_TRUE(wait_until([&] { return accepted.wait_end(0ms) != raw_socket::ending::none; }));
  }
}

// abort() ends a start-up with its one event.
TEST_P(VerbsQueuePair, AbortEndsAStartUpWithOneEvent) {
  node n(GetParam());
  raw_listener silent(GetParam().v6);
  for (const bool early : {true, false}) {
    side s(n);
    ASSERT_TRUE(s.qp.connect(silent.local()));
    s.receive(1, 0, 10);
    raw_socket accepted;
    if (!early) {
      accepted = silent.accept();
      ASSERT_TRUE(wait_until([&] { return true; }));
      for (int i = 0; i < 50; ++i) node::drive_all();
    }
    s.qp.abort();
    const auto e = s.expect(event_kind::connect_error);
    EXPECT_EQ(e.reason, std::errc::connection_aborted);
    EXPECT_EQ(e.remote, silent.local());
    s.expect(1, status::flushed);
    EXPECT_EQ(s.qp.state(), qp_state::error);
    EXPECT_TRUE(stays_quiet(s.channel, 5ms));
    EXPECT_EQ(error_of(s.qp.connect(silent.local())), verbs::errc::wrong_state);
    EXPECT_TRUE(s.qp.reset());
    if (early) (void)silent.accept();
  }
}

// A connection whose queue pair is gone still sends its FIN, and its Terminate.
TEST(VerbsQueuePairEnd, AConnectionLingersUntilItsTerminateIsOut) {
  for (int i = 0; i < 10; ++i) {
    node n;
    auto s = std::make_unique<side>(n);
    raw_listener listener;
    ASSERT_TRUE(s->qp.connect(listener.local()));
    raw_peer peer(listener.accept());
    ASSERT_TRUE(peer.accept());
    s->expect(event_kind::established);
    peer.send_ulpdu(untagged(rdmap::opcode::send, 7, {}));  // wrong MSN
    s->expect(event_kind::disconnected);
    s.reset();
    const auto t = peer.terminate();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, (rdmap::term_code{1, 2, 3}));
    EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  }
}

TEST(VerbsQueuePairEnd, AConnectionLingersUntilThePeersFin) {
  node n;
  auto s = std::make_unique<side>(n);
  raw_listener listener;
  ASSERT_TRUE(s->qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s->expect(event_kind::established);
  const auto to = s->region.remote();
  ASSERT_TRUE(s->qp.disconnect());
  s.reset();
  EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  // It takes no more orders.
  peer.send_ulpdu(tagged(rdmap::opcode::write, to.key, to.offset, pattern(100, 1)));
  peer.socket.fin();
  peer.socket.wait_end(5s);
}

// Reset and connect anew while other threads post: nothing is lost. The queue pair moves between two domains.
TEST(VerbsQueuePairThreads, PostsRacingWithResetCompleteExactlyOnce) {
  pair_options options{.how = {.domains = 2}};
  options.client.qp = {.max_send_requests = 4096, .max_receive_requests = 4096};
  options.client.cq_depth = 1 << 16;
  connected_pair pair(options);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> posted{0};
  std::thread poster([&] {
    const verbs::sge element = pair.client.region.element(0, 16);
    while (!stop.load()) {
      if (pair.client.qp.post_send({.id = posted.load(),
                                    .op = opcode::rdma_write,
                                    .elements = {&element, 1},
                                    .remote = pair.server.region.remote()})) {
        posted.fetch_add(1);
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t completed = 0;
  const auto drain = [&] {
    for (auto got = poll_poisoned(pair.client.cq); !got.empty(); got = poll_poisoned(pair.client.cq)) {
      for (const auto& c : got) {
        if (c.id == ~std::uint64_t{1}) continue;
        EXPECT_EQ(c.id, completed++);
      }
    }
  };
  for (int round = 0; round < 30; ++round) {
    const auto some = posted.load() + 200;
    ASSERT_TRUE(wait_until([&] {
      drain();
      return posted.load() > some;
    }));
    pair.server.qp.abort();
    pair.client.expect(event_kind::disconnected);
    pair.server.expect(event_kind::disconnected);
    ASSERT_TRUE(wait_until([&] {
      drain();
      return pair.client.qp.reset().has_value();
    }));
    ASSERT_TRUE(pair.server.qp.reset());
    ASSERT_TRUE(pair.client.qp.connect(pair.listener.local()));
    const auto request = next_event(pair.listening);
    ASSERT_TRUE(pair.server.qp.accept(request.request));
    pair.client.expect(event_kind::established);
    pair.server.expect(event_kind::established);
  }
  stop.store(true);
  poster.join();
  EXPECT_TRUE(wait_until([&] {
    drain();
    return completed == posted.load();
  })) << completed
      << " of " << posted.load();
}

// Field fault B022, B065, B070: both ends end it at the same moment, in every way; one event each.
TEST(VerbsQueuePairThreads, BothEndsEndAtOnce) {
  test_support::random_source random(7);
  pair_options options{.how = {.domains = 2}};
  connected_pair pair(options);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    for (side* s : {&pair.client, &pair.server}) {
      side& other = s == &pair.client ? pair.server : pair.client;
      s->receive(1, 0, 100);
      s->write(2, 0, 100000, other.region.remote(0));
      s->read(3, 0, 100000, other.region.remote(0));
    }
    const auto how = random.below(9);
    const auto end = [](side& s, std::size_t choice) {
      if (choice == 0) {
        (void)s.qp.disconnect();
      } else if (choice == 1) {
        s.qp.abort();
      } else {
        (void)s.try_send(4, {.op = opcode::rdma_write, .signaled = false});
        (void)s.qp.disconnect();
      }
    };
    std::thread peer([&] { end(pair.server, how / 3); });
    end(pair.client, how % 3);
    peer.join();
    for (side* s : {&pair.client, &pair.server}) {
      s->expect(event_kind::disconnected);
      EXPECT_TRUE(s->settle());
      s->arrived.clear();
      s->ledger.forgive();
      EXPECT_TRUE(wait_until([&] { return s->qp.reset().has_value(); }));
      EXPECT_TRUE(stays_quiet(s->channel, 1ms));
    }
    pair.connect();
  }
}

}  // namespace
}  // namespace iwarp::verbs_test
