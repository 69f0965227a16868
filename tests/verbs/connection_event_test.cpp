// Events of connections: each exactly once, of the right kind and with the reason in words, for every way in which a
// start-up can go; what the sides learn of each other.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::event_kind;
using verbs::qp_state;

octets text(std::string_view words) {
  octets made;
  for (const char c : words) made.push_back(static_cast<std::byte>(c));
  return made;
}

/// What the only event of a failed connect() must be.
void expect_failure(side& s, event_kind kind, std::error_code reason, std::string_view words = {}) {
  const auto e = s.expect(kind);
  EXPECT_EQ(e.reason, reason) << e.reason_text;
  EXPECT_NE(e.reason_text.find(words), std::string::npos) << e.reason_text;
  EXPECT_EQ(e.user_data, 4711u);
  EXPECT_EQ(s.qp.state(), qp_state::idle);
  EXPECT_TRUE(stays_quiet(s.channel, 3ms));
}

class VerbsConnect : public testing::TestWithParam<setup> {};
INSTANTIATE_TEST_SUITE_P(Progress, VerbsConnect, testing::ValuesIn(all_setups()), setup_name);

// What both sides learn: addresses, private data, read depths, revision, CRC, user data.
TEST_P(VerbsConnect, BothSidesLearnOfEachOther) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{196}, std::size_t{251}, std::size_t{252},
                                 std::size_t{255}, std::size_t{256}, std::size_t{507}, std::size_t{508}}) {
    SCOPED_TRACE(size);
    const octets question = pattern(size, 1), answer = pattern(508 - size, 2);
    pair_options options{.how = GetParam()};
    options.connect.private_data = question;
    options.connect.ird = 7;
    options.connect.ord = 3;
    options.listen.ird = 5;
    options.listen.ord = 9;
    options.listen.user_data = 11;
    options.accept.private_data = answer;
    options.client.qp.user_data = 22;
    options.server.qp.user_data = 33;
    connected_pair pair(options);
    EXPECT_EQ(pair.request.private_data, question);
    EXPECT_EQ(pair.request.user_data, 11u);
    EXPECT_EQ(pair.request.qp_number, 0u);
    EXPECT_EQ(pair.request.mpa_revision, 2);
    EXPECT_EQ(pair.request.peer_ird, 7);  // field fault B149: not the other way round
    EXPECT_EQ(pair.request.peer_ord, 3);
    EXPECT_EQ(pair.request.local, pair.listener.local());
    EXPECT_EQ(pair.client_up.private_data, answer);
    EXPECT_EQ(pair.client_up.user_data, 22u);
    EXPECT_EQ(pair.client_up.remote, pair.listener.local());
    EXPECT_EQ(pair.client_up.local, pair.request.remote);
    EXPECT_EQ(pair.client_up.mpa_revision, 2);
    EXPECT_TRUE(pair.client_up.crc && pair.server_up.crc);
    EXPECT_EQ(pair.server_up.user_data, 33u);
    EXPECT_EQ(pair.server_up.private_data, question);
    EXPECT_EQ(pair.server_up.remote, pair.client_up.local);
    // Own depths are bounded by what the peer holds (RFC 6581 s9).
    EXPECT_EQ(pair.client.qp.ord(), 3);
    EXPECT_LE(pair.client.qp.ord(), pair.server.qp.ird());
    EXPECT_LE(pair.server.qp.ord(), pair.client.qp.ird());
    EXPECT_EQ(pair.server.qp.ord(), 7);
    EXPECT_EQ(pair.client.qp.ird(), 7);
    const auto gone = [&] {
      pair.client.qp.abort();
      return pair.server.expect(event_kind::disconnected);
    }();
    EXPECT_EQ(gone.remote, pair.client_up.local) << "also when TCP is closed";
  }
}

// Depths of both sides in many combinations: neither side may have more Reads out than the other holds; accept() may
// change the listener's.
TEST(VerbsConnectDepths, NobodyAsksForMoreThanThePeerHolds) {
  const std::array<std::uint16_t, 6> depths = {0, 1, 2, 16, 200, verbs::max_read_depth};
  for (const std::uint16_t ird : depths) {
    for (const std::uint16_t ord : depths) {
      SCOPED_TRACE(testing::Message() << "IRD " << ird << " ORD " << ord);
      pair_options options;
      options.connect.ird = ird;
      options.connect.ord = ord;
      options.accept.ird = 4;
      options.accept.ord = 6;
      options.client.memory = options.server.memory = 256;
      connected_pair pair(options);
      EXPECT_LE(pair.client.qp.ord(), ord);
      EXPECT_LE(pair.client.qp.ord(), pair.server.qp.ird());
      EXPECT_LE(pair.server.qp.ord(), std::min<std::uint16_t>(6, ird));
      EXPECT_LE(pair.server.qp.ord(), pair.client.qp.ird());
      EXPECT_GE(pair.server.qp.ird(), std::min<std::uint16_t>(ord, 4));
    }
  }
}

// With the peer-to-peer model either side may speak first; the RTR leaves no completion and takes no receive (MPA
// start-up of RFC 6581 s9.2, field fault B095).
TEST_P(VerbsConnect, PeerToPeerLetsTheResponderSpeakFirst) {
  pair_options options{.how = GetParam(), .open = false};
  options.connect.peer_to_peer = true;
  connected_pair pair(options);
  pair.client.receive(1, 0, 100);
  pair.server.receive(1, 0, 100);
  pair.server.send(1, 0, 100);
  pair.server.expect(1);
  pair.client.expect(1);
  pair.client.send(2, 0, 100);
  pair.client.expect(2);
  pair.server.expect(1);
  EXPECT_EQ(pair.client.ledger.outstanding() + pair.server.ledger.outstanding(), 0u);
  pair.disconnect();
}

// Nobody listens there: unreachable, refused (field fault B196).
TEST_P(VerbsConnect, ARefusedConnectionIsUnreachable) {
  node n(GetParam());
  side s(n, {.qp = {.user_data = 4711}});
  verbs::endpoint closed;
  { closed = raw_listener(GetParam().v6).local(); }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(s.qp.connect(closed));
    const auto e = s.expect(event_kind::unreachable);
    EXPECT_EQ(e.reason, std::errc::connection_refused) << e.reason_text;
    EXPECT_EQ(e.remote, closed);
    EXPECT_EQ(s.qp.state(), qp_state::idle);
    EXPECT_TRUE(stays_quiet(s.channel, 2ms));
  }
}

// A backlog that is full swallows the SYN: the limit of time says so.
TEST(VerbsConnectTimeouts, TcpThatDoesNotOpenIsUnreachable) {
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  // TEST-NET-1 goes nowhere, or the machine has no route at all; either way nobody answers.
  verbs::connect_options options;
  options.tcp_timeout = 30ms;
  ASSERT_TRUE(s.qp.connect({boost::asio::ip::make_address("192.0.2.1"), 9}, options));
  const auto e = s.expect(event_kind::unreachable);
  EXPECT_TRUE(e.reason);
  EXPECT_FALSE(e.reason_text.empty());
  EXPECT_EQ(s.qp.state(), qp_state::idle);
}

// Field fault B134: a peer that opens TCP and stays silent.
TEST(VerbsConnectTimeouts, ASilentResponderTimesOut) {
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  raw_listener listener;
  verbs::connect_options options;
  options.startup_timeout = 50ms;
  ASSERT_TRUE(s.qp.connect(listener.local(), options));
  raw_peer peer(listener.accept());
  expect_failure(s, event_kind::connect_error, mpa::errc::startup_timeout, "did not arrive in time");
  EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
  // Not silent, but never done: the limit is for the whole frame.
  ASSERT_TRUE(s.qp.connect(listener.local(), options));
  raw_peer slow(listener.accept());
  slow.socket.send(text("MPA ID Rep"));
  expect_failure(s, event_kind::connect_error, mpa::errc::startup_timeout);
}

// SEC-26, SEC-18: silent initiators go away by themselves, with no event; so do those that send an FPDU by halves.
TEST(VerbsConnectTimeouts, SilentInitiatorsAreReaped) {
  node n;
  side s(n);
  auto listening = *verbs::event_channel::create(n.context);
  verbs::listen_options options;
  options.startup_timeout = 40ms;
  options.fpdu_timeout = 60ms;
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), options);
  raw_peer silent = raw_peer::connect(listener.local());
  raw_peer cut = raw_peer::connect(listener.local());
  cut.socket.send(text("MPA ID"));
  EXPECT_NE(silent.socket.wait_end(), raw_socket::ending::none);
  EXPECT_NE(cut.socket.wait_end(), raw_socket::ending::none);
  EXPECT_TRUE(stays_quiet(listening, 2ms));

  raw_peer half = raw_peer::connect(listener.local());
  half.send_request();
  ASSERT_TRUE(s.qp.accept(next_event(listening).request));
  ASSERT_TRUE(half.start_up_frame(mpa::frame_kind::reply));
  s.expect(event_kind::established);
  // An idle connection may be idle for ever; a begun FPDU may not.
  EXPECT_EQ(half.socket.wait_end(100ms), raw_socket::ending::none);
  half.socket.send(const_bytes(fpdu(tagged(rdmap::opcode::write, stag{1}, 0, pattern(100, 1)))).first(50));
  EXPECT_EQ(s.expect(event_kind::disconnected).reason, mpa::errc::fpdu_timeout);
  EXPECT_EQ(half.socket.wait_end(), raw_socket::ending::reset);
}

// Peers that are not iWARP, or not in this role or revision: one event, with the cause in words (E3).
TEST(VerbsConnectPeers, StrangersAreToldApart) {
  struct stranger {
    std::string_view name;
    octets says;
    mpa::errc reason;
  };
  auto bad_revision = [](std::uint8_t revision) {
    octets frame = text("MPA ID Rep Frame");
    frame.insert(frame.end(), {std::byte{0x40}, static_cast<std::byte>(revision), std::byte{0}, std::byte{0}});
    return frame;
  };
  octets long_data = text("MPA ID Rep Frame");
  long_data.insert(long_data.end(), {std::byte{0x40}, std::byte{2}, std::byte{2}, std::byte{1}});
  octets short_data = text("MPA ID Rep Frame");
  short_data.insert(short_data.end(), {std::byte{0x50}, std::byte{2}, std::byte{0}, std::byte{3}});
  const std::array<stranger, 8> cases = {{
      {"http", text("HTTP/1.1 400 Bad Request\r\n\r\n"), mpa::errc::bad_key},
      {"ssh", text("SSH-2.0-OpenSSH_9.2\r\n"), mpa::errc::bad_key},
      {"one octet", text("S"), mpa::errc::bad_key},
      {"initiator as well", text("MPA ID Req Frame"), mpa::errc::same_role},
      {"revision 0", bad_revision(0), mpa::errc::bad_revision},
      {"revision 3", bad_revision(3), mpa::errc::bad_revision},
      {"private data too long", long_data, mpa::errc::bad_private_data},
      {"no room for the enhanced data", short_data, mpa::errc::bad_private_data},
  }};
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  raw_listener listener;
  for (const stranger& c : cases) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(s.qp.connect(listener.local()));
    raw_peer peer(listener.accept());
    peer.socket.send(c.says);
    expect_failure(s, event_kind::connect_error, c.reason, make_error_code(c.reason).message());
    EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
  }
}

// The same at the listener: no event, the connection closed without a word, everybody else served (field fault B011).
TEST(VerbsConnectPeers, TheListenerSurvivesStrangers) {
  node n;
  side s(n), client(n);
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  octets revision_zero = text("MPA ID Req Frame");
  revision_zero.insert(revision_zero.end(), {std::byte{0x40}, std::byte{0}, std::byte{0}, std::byte{0}});
  octets too_long = text("MPA ID Req Frame");
  too_long.insert(too_long.end(), {std::byte{0x40}, std::byte{1}, std::byte{0xFF}, std::byte{0xFF}});
  octets eager = text("MPA ID Req Frame");
  eager.insert(eager.end(), {std::byte{0x40}, std::byte{1}, std::byte{0}, std::byte{0}, std::byte{9}});
  for (const octets& says :
       {text("GET / HTTP/1.1\r\n"), text("MPA ID Rep Frame"), revision_zero, too_long, text("M")}) {
    raw_peer peer = raw_peer::connect(listener.local());
    peer.socket.send(says);
    if (says.size() == 1) peer.socket.fin();
    EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
  }
  for (int i = 0; i < 5; ++i) raw_peer::connect(listener.local()).socket.reset();
  EXPECT_TRUE(stays_quiet(listening, 5ms));
  // Octets behind the Request, before it is answered: whether the event came first or not, it cannot be accepted.
  raw_peer peer = raw_peer::connect(listener.local());
  peer.socket.send(eager);
  EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
  while (const auto e = listening.poll()) {
    EXPECT_EQ(s.qp.accept(e->request).error(), verbs::errc::no_such_request);
  }
  ASSERT_TRUE(client.qp.connect(listener.local()));
  ASSERT_TRUE(s.qp.accept(next_event(listening).request));
  client.expect(event_kind::established);
}

// Rejections with private data of every length; the initiator may try again (field faults B203, B118).
TEST_P(VerbsConnect, RejectedWithPrivateData) {
  node n(GetParam());
  side s(n, {.qp = {.user_data = 4711}});
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, GetParam().loopback(), {});
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    for (const std::size_t size : {0u, 1u, 100u, 508u, 512u}) {
      if (revision == 2 && size == 512) continue;
      SCOPED_TRACE(testing::Message() << "revision " << int{revision} << ", " << size << " octets");
      verbs::connect_options options;
      options.mpa_revision = revision;
      ASSERT_TRUE(s.qp.connect(listener.local(), options));
      const auto request = next_event(listening);
      EXPECT_EQ(request.mpa_revision, revision);
      const octets words = pattern(size, size);
      ASSERT_TRUE(verbs::reject(request.request, words));
      EXPECT_EQ(verbs::reject(request.request, words).error(), verbs::errc::no_such_request);
      const auto e = s.expect(event_kind::rejected);
      EXPECT_EQ(e.reason, mpa::errc::rejected);
      EXPECT_EQ(e.private_data, words);
      EXPECT_EQ(e.user_data, 4711u);
      EXPECT_EQ(s.qp.state(), qp_state::idle);
      EXPECT_TRUE(stays_quiet(s.channel, 1ms));
    }
  }
}

// A Request that nobody answers is a rejection, when its last handle goes.
TEST_P(VerbsConnect, UnansweredIsRejected) {
  node n(GetParam());
  side s(n, {.qp = {.user_data = 4711}});
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, GetParam().loopback(), {});
  ASSERT_TRUE(s.qp.connect(listener.local()));
  {
    const auto request = next_event(listening);
    const verbs::connection_request copy = request.request;
    EXPECT_TRUE(stays_quiet(s.channel, 5ms));
  }
  expect_failure(s, event_kind::rejected, mpa::errc::rejected);
}

// siw refuses markers with an empty rejection: the user learns which of the two it was.
TEST(VerbsConnectPeers, RefusedMarkersAreNamed) {
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  raw_listener listener;
  verbs::connect_options options;
  options.markers = true;
  ASSERT_TRUE(s.qp.connect(listener.local(), options));
  raw_peer peer(listener.accept());
  const auto request = peer.start_up_frame(mpa::frame_kind::request);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->header.markers);
  peer.send_frame(mpa::reject_request({}, *request, {}));
  expect_failure(s, event_kind::rejected, mpa::errc::markers_refused, "markers");
}

// SIW-12: the same private data without markers, once, when the caller allows it; not after a rejection that says why.
TEST(VerbsConnectPeers, FallsBackWithoutMarkersOnce) {
  const octets words = pattern(20, 1);
  enum class then { accepts, refuses };
  for (const then second : {then::accepts, then::refuses}) {
    SCOPED_TRACE(static_cast<int>(second));
    node n;
    side s(n, {.qp = {.user_data = 4711}});
    raw_listener listener;
    verbs::connect_options options;
    options.markers = true;
    options.fall_back_without_markers = true;
    options.private_data = words;
    ASSERT_TRUE(s.qp.connect(listener.local(), options));
    raw_peer peer(listener.accept());
    const auto request = peer.start_up_frame(mpa::frame_kind::request);
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->header.markers);
    peer.send_frame(mpa::reject_request({}, *request, {}));
    raw_peer again(listener.accept());
    const auto plain = again.start_up_frame(mpa::frame_kind::request);
    ASSERT_TRUE(plain);
    EXPECT_FALSE(plain->header.markers);
    EXPECT_TRUE(std::ranges::equal(plain->private_data(), words));
    if (second == then::accepts) {
      again.send_frame(mpa::accept_request({}, *plain, {}).reply);
      EXPECT_FALSE(s.expect(event_kind::established).markers);
    } else {
      again.send_frame(mpa::reject_request({}, *plain, {}));
      expect_failure(s, event_kind::rejected, mpa::errc::rejected);
    }
    EXPECT_TRUE(stays_quiet(s.channel, 3ms));
  }
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  raw_listener listener;
  verbs::connect_options options;
  options.markers = true;
  options.fall_back_without_markers = true;
  ASSERT_TRUE(s.qp.connect(listener.local(), options));
  raw_peer peer(listener.accept());
  const auto request = peer.start_up_frame(mpa::frame_kind::request);
  ASSERT_TRUE(request);
  peer.send_frame(mpa::reject_request({}, *request, words));
  expect_failure(s, event_kind::rejected, mpa::errc::rejected);
}

// A peer that leaves during start-up, at every octet of its Reply, by FIN and by reset.
TEST(VerbsConnectPeers, APeerThatLeavesDuringStartUp) {
  node n;
  side s(n, {.qp = {.user_data = 4711}});
  raw_listener listener;
  verbs::connect_options options;
  options.fall_back_to_revision_1 = false;
  for (std::size_t cut = 0; cut <= 24; ++cut) {
    for (const bool reset : {false, true}) {
      SCOPED_TRACE(testing::Message() << cut << " octets, then " << (reset ? "reset" : "FIN"));
      ASSERT_TRUE(s.qp.connect(listener.local(), options));
      raw_peer peer(listener.accept());
      const auto request = peer.start_up_frame(mpa::frame_kind::request);
      ASSERT_TRUE(request);
      std::array<std::byte, mpa::startup_fixed_size + mpa::max_private_data> out;
      const auto reply = mpa::accept_request({}, *request, pattern(1, 1)).reply;
      ASSERT_EQ(reply.emit(out), 25u);
      peer.socket.send(std::span(out).first(cut));
      if (reset) {
        peer.socket.reset();
      } else {
        peer.socket.fin();
      }
      const auto e = s.expect(event_kind::connect_error);
      if (reset || cut == 0) {
        EXPECT_TRUE(e.reason == mpa::errc::tcp_lost || (reset && e.reason == mpa::errc::startup_cut_short))
            << e.reason_text;
      } else {
        EXPECT_EQ(e.reason, mpa::errc::startup_cut_short) << e.reason_text;
      }
      EXPECT_EQ(s.qp.state(), qp_state::idle);
    }
  }
  EXPECT_TRUE(stays_quiet(s.channel, 3ms));
}

// An initiator that leaves at every octet of its Request, and while it is being decided.
TEST(VerbsConnectPeers, AnInitiatorThatLeaves) {
  node n;
  side s(n);
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  std::array<std::byte, mpa::startup_fixed_size + mpa::max_private_data> out;
  const std::size_t size = mpa::make_request({}, pattern(3, 1)).emit(out);
  for (std::size_t cut = 0; cut < size; ++cut) {
    raw_peer peer = raw_peer::connect(listener.local());
    peer.socket.send(std::span(out).first(cut));
    if (cut % 2 == 0) {
      peer.socket.reset();
    } else {
      peer.socket.fin();
      EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
    }
  }
  EXPECT_TRUE(stays_quiet(listening, 5ms));
  for (const bool reset : {false, true}) {
    raw_peer peer = raw_peer::connect(listener.local());
    peer.socket.send(std::span(out).first(size));
    const auto request = next_event(listening);
    if (reset) {
      peer.socket.reset();
    } else {
      peer.socket.fin();
      EXPECT_NE(peer.socket.wait_end(), raw_socket::ending::none);
    }
    EXPECT_TRUE(wait_until([&] {
      auto r = verbs::reject(request.request, pattern(600, 1));  // never valid: it only asks
      return r.error() == verbs::errc::no_such_request;
    }));
    EXPECT_EQ(s.qp.accept(request.request).error(), verbs::errc::no_such_request);
    EXPECT_EQ(s.qp.state(), qp_state::idle);
  }
}

// Field fault B068: a peer of revision 1 alone closes, or answers unenhanced: asked once more with revision 1, the same
// private data, and one event in the end.
TEST(VerbsConnectPeers, FallsBackToRevisionOneOnce) {
  enum class says { nothing_fin, nothing_reset, unenhanced };
  const octets words = pattern(100, 1);
  for (const says first : {says::nothing_fin, says::nothing_reset, says::unenhanced}) {
    for (const bool second_works : {true, false}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(first) << second_works);
      node n;
      side s(n, {.qp = {.user_data = 4711}});
      raw_listener listener;
      verbs::connect_options options;
      options.private_data = words;
      ASSERT_TRUE(s.qp.connect(listener.local(), options));
      raw_peer old(listener.accept());
      const auto request = old.start_up_frame(mpa::frame_kind::request);
      ASSERT_TRUE(request);
      EXPECT_EQ(request->header.revision, 2);
      EXPECT_TRUE(std::ranges::equal(request->private_data(), words));
      if (first == says::nothing_fin) old.socket.fin();
      if (first == says::nothing_reset) old.socket.reset();
      if (first == says::unenhanced) {
        mpa::startup_frame reply;
        reply.header.kind = mpa::frame_kind::reply;
        reply.header.revision = 2;
        old.send_frame(reply);
      }
      raw_peer again(listener.accept());
      const auto plain = again.start_up_frame(mpa::frame_kind::request);
      ASSERT_TRUE(plain);
      EXPECT_EQ(plain->header.revision, 1);
      EXPECT_FALSE(plain->enhanced);
      EXPECT_TRUE(std::ranges::equal(plain->private_data(), words));
      if (second_works) {
        again.send_frame(mpa::accept_request({.revision = 1}, *plain, pattern(5, 2)).reply);
        const auto e = s.expect(event_kind::established);
        EXPECT_EQ(e.mpa_revision, 1);
        EXPECT_EQ(e.private_data, pattern(5, 2));
        EXPECT_EQ(s.qp.ord(), 16) << "nothing was negotiated";
        s.send(1, {.op = verbs::opcode::rdma_write});
        s.expect(1);
      } else {
        again.socket.fin();
        expect_failure(s, event_kind::connect_error, mpa::errc::tcp_lost);
      }
      EXPECT_TRUE(stays_quiet(s.channel, 3ms));
    }
  }
}

// Revision 1 between two of us; a listener that allows no other closes on enhanced Requests, and is found by falling
// back.
TEST_P(VerbsConnect, RevisionOneWorksToo) {
  for (const bool listener_only : {false, true}) {
    pair_options options{.how = GetParam()};
    if (listener_only) {
      options.listen.mpa_revision = 1;
    } else {
      options.connect.mpa_revision = 1;
    }
    connected_pair pair(options);
    EXPECT_EQ(pair.request.mpa_revision, 1);
    EXPECT_EQ(pair.client_up.mpa_revision, 1);
    pair.server.receive(1, 0, 1000);
    pair.client.send(1, 0, 1000);
    pair.server.expect(1);
    pair.client.read(2, 0, 1000, pair.server.region.remote());
    pair.client.expect(1);
    pair.client.expect(2);
    pair.disconnect();
  }
}

// RFC 6581 s9: a responder whose ORD we cannot match, and one that has no RTR we know, get a Terminate that says so;
// the user gets connect_error with the Terminate in it (E4, E5).
TEST(VerbsConnectPeers, BadAgreementsAreTerminated) {
  for (const bool rtr : {false, true}) {
    SCOPED_TRACE(rtr);
    node n;
    side s(n, {.qp = {.user_data = 4711}});
    raw_listener listener;
    verbs::connect_options options;
    options.peer_to_peer = rtr;
    ASSERT_TRUE(s.qp.connect(listener.local(), options));
    raw_peer peer(listener.accept());
    const auto request = peer.start_up_frame(mpa::frame_kind::request);
    ASSERT_TRUE(request);
    auto reply = mpa::accept_request({}, *request, {}).reply;
    if (rtr) {
      reply.enhanced->rtr = {};
    } else {
      reply.enhanced->ord = 0x3FFE;
    }
    peer.send_frame(reply);
    const auto t = peer.terminate();
    ASSERT_TRUE(t);
    const rdmap::term_code want{2, 0, static_cast<std::uint8_t>(rtr ? 7 : 6)};
    EXPECT_EQ(t->code, want);
    const auto e = s.expect(event_kind::connect_error);
    EXPECT_EQ(e.reason, rtr ? mpa::errc::no_matching_rtr : mpa::errc::insufficient_ird);
    ASSERT_TRUE(e.sent_terminate);
    EXPECT_EQ(e.sent_terminate->code, want);
    EXPECT_NE(e.reason_text.find(rdmap::describe(want)), std::string::npos) << e.reason_text;
    EXPECT_EQ(s.qp.state(), qp_state::idle);
    // The old connection may still linger: a new one can be tried at once.
    ASSERT_TRUE(s.qp.connect(listener.local()));
    raw_peer next(listener.accept());
    ASSERT_TRUE(next.accept());
    s.expect(event_kind::established);
  }
}

// Field fault B134 of the responder's side: accepted with the peer-to-peer model, and the RTR never comes.
TEST(VerbsConnectPeers, APeerToPeerInitiatorThatLeavesBeforeItsRtr) {
  node n;
  side s(n);
  auto listening = *verbs::event_channel::create(n.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback(), {});
  raw_peer peer = raw_peer::connect(listener.local());
  peer.send_request({.peer_to_peer = true});
  ASSERT_TRUE(s.qp.accept(next_event(listening).request));
  ASSERT_TRUE(peer.start_up_frame(mpa::frame_kind::reply));
  EXPECT_EQ(s.qp.state(), qp_state::connecting);
  peer.socket.fin();
  EXPECT_EQ(s.expect(event_kind::connect_error).reason, mpa::errc::tcp_lost);
  EXPECT_EQ(s.qp.state(), qp_state::idle);
}

// A connection that ends by an error: the reason is readable at both ends, with the Terminate in words (RDMAP-42,
// RDMAP-60, VRB-11, VRB-37).
TEST_P(VerbsConnect, TheReasonIsReadableAtBothEnds) {
  connected_pair pair(GetParam());
  pair.client.write(1, 0, 100, {stag{0x123400}, 0});
  const auto there = pair.server.expect(event_kind::disconnected);
  const auto here = pair.client.expect(event_kind::disconnected);
  const rdmap::term_code code{1, 1, 0};
  ASSERT_TRUE(there.sent_terminate);
  EXPECT_FALSE(there.received_terminate);
  EXPECT_EQ(there.sent_terminate->code, code);
  EXPECT_EQ(there.reason, ddp::errc::tagged_invalid_stag);
  EXPECT_NE(there.reason_text.find("Terminate sent: " + rdmap::describe(code)), std::string::npos);
  ASSERT_TRUE(here.received_terminate);
  EXPECT_FALSE(here.sent_terminate);  // RDMAP-69
  EXPECT_EQ(here.received_terminate->code, code);
  EXPECT_EQ(here.reason, rdmap::errc::terminated_by_peer);
  EXPECT_NE(here.reason_text.find("Terminate received: " + rdmap::describe(code)), std::string::npos);
  EXPECT_EQ(pair.client.qp.received_terminate()->code, code);
  EXPECT_EQ(pair.server.qp.sent_terminate()->code, code);
  EXPECT_TRUE(pair.client.wait_state(qp_state::error));
  EXPECT_TRUE(pair.server.wait_state(qp_state::error));
  EXPECT_TRUE(stays_quiet(pair.client.channel, 2ms));
  EXPECT_TRUE(stays_quiet(pair.server.channel, 2ms));
}

// RST while established, in either role.
TEST(VerbsConnectPeers, AResetIsALostConnection) {
  node n;
  side s(n);
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  s.receive(1, 0, 10);
  peer.socket.reset();
  const auto lost = s.expect(event_kind::disconnected);
  EXPECT_EQ(lost.reason, mpa::errc::tcp_lost);
  EXPECT_EQ(lost.tcp_error, std::errc::connection_reset);
  EXPECT_TRUE(lost.reason_text.ends_with(": " + lost.tcp_error.message())) << lost.reason_text;
  s.expect(1, verbs::status::flushed);
  EXPECT_EQ(s.qp.state(), qp_state::error);
  EXPECT_TRUE(stays_quiet(s.channel, 3ms));
}

}  // namespace
}  // namespace iwarp::verbs_test
