// Start-up of a stream from idle to full operation, or not: frames octet by octet, whatever a peer may send instead,
// rejection, peer-to-peer, time, and the connection ending at any octet of it.
#include <gtest/gtest.h>

#include "tests/rdmap/engine_pair.hpp"
#include "tests/rdmap/scripted_peer.hpp"
#include "tests/support/hex.hpp"

namespace iwarp::stream_test {
namespace {

using rdmap::stream_event;
using rdmap::stream_state;
using rdmap::wr_status;
using test_support::from_hex;
using test_support::to_hex;
using namespace std::chrono_literals;

constexpr std::size_t whole = std::numeric_limits<std::size_t>::max();

void expect_failed(scripted_peer& peer, std::error_code why, const char* what) {
  peer.side.poll();
  EXPECT_EQ(peer.side.engine.error(), why) << what << ": " << peer.side.engine.error().message();
  EXPECT_EQ(peer.side.events, (std::vector{stream_event::failed, stream_event::closed})) << what;
  EXPECT_GE(peer.side.engine.wants(), mpa::disposition::close) << what;
  EXPECT_TRUE(peer.drain().empty()) << what;
  EXPECT_EQ(peer.side.engine.next_deadline(), never) << what;
  EXPECT_FALSE(peer.side.engine.wants_read()) << what;
}

// Frames -------------------------------------------------------------------------------------------------------------

// MPA-46, MPA-48, MPA-56, MPA-60, MPA-82, MPA-85, MPA-99
TEST(Frames, RequestsByOption) {
  struct request_case {
    mpa::startup_options own;
    octets data;
    const char* wire;
  };
  const octets ping = from_hex("50494e47");
  const std::vector<request_case> cases{
      {{.revision = 1}, {}, "4d504120 49442052 65712046 72616d65 40010000"},
      {{.revision = 1, .crc = false, .markers = true}, ping, "4d504120 49442052 65712046 72616d65 80010004 50494e47"},
      {{.peer_to_peer = true, .rtr = {.write = true, .read = true}},
       ping,
       "4d504120 49442052 65712046 72616d65 50020008 8010c010 50494e47"},
      {{.crc = false}, {}, "4d504120 49442052 65712046 72616d65 10020004 00100010"},
      {{.ird = 0, .ord = 0x3FFE}, {}, "4d504120 49442052 65712046 72616d65 50020004 00003ffe"}};
  for (const auto& c : cases) {
    rdmap::stream_options options;
    options.startup = c.own;
    scripted_peer peer({.initiator = false}, options);
    peer.side.engine.initiate(c.data, peer.side.now);
    EXPECT_EQ(to_hex(peer.drain()), to_hex(from_hex(c.wire)));
    // MPA-67: nothing more before the Reply.
    region& own = peer.side.user.add(64);
    peer.side.send(own.element(0, 64));
    EXPECT_TRUE(peer.drain().empty());
    peer.side.engine.abort(peer.side.now);
  }
}

// MPA-49, MPA-53, MPA-86, MPA-87, MPA-100, MPA-102, MPA-103
TEST(Frames, RepliesByRequest) {
  struct reply_case {
    const char* request;
    const char* reply;
  };
  const std::vector<reply_case> cases{
      // Revision 1; R and every reserved bit set (MPA-52, MPA-54): ignored, S too (protocol point B12)
      {"4d504120 49442052 65712046 72616d65 40010000", "4d504120 49442052 65702046 72616d65 40010000"},
      {"4d504120 49442052 65712046 72616d65 7f010000", "4d504120 49442052 65702046 72616d65 40010000"},
      // C=0: the Reply states the outcome
      {"4d504120 49442052 65712046 72616d65 00010000", "4d504120 49442052 65702046 72616d65 40010000"},
      // Revision 2 without S
      {"4d504120 49442052 65712046 72616d65 40020000", "4d504120 49442052 65702046 72616d65 40020000"},
      // siw's default
      {"4d504120 49442052 65712046 72616d65 10020004 00100010",
       "4d504120 49442052 65702046 72616d65 50020004 00100010"},
      // A with C and D; flags without A are ignored
      {"4d504120 49442052 65712046 72616d65 50020008 8010c010 50494e47",
       "4d504120 49442052 65702046 72616d65 50020004 8010c010"},
      {"4d504120 49442052 65712046 72616d65 50020004 4010c010",
       "4d504120 49442052 65702046 72616d65 50020004 00100010"},
      // IRD and ORD follow the Request: MPA-90, MPA-91; 0x3FFF leaves them alone: MPA-95, MPA-96
      {"4d504120 49442052 65712046 72616d65 50020004 00030040",
       "4d504120 49442052 65702046 72616d65 50020004 00400003"},
      {"4d504120 49442052 65712046 72616d65 50020004 3fff3fff",
       "4d504120 49442052 65702046 72616d65 50020004 3fff3fff"},
      // MPA-98: Read RTR and ORD 0 (IRD stays as it is here, above 0)
      {"4d504120 49442052 65712046 72616d65 50020004 80004000",
       "4d504120 49442052 65702046 72616d65 50020004 80104000"}};
  for (const std::size_t chunk : {whole, std::size_t{1}}) {
    for (const auto& c : cases) {
      scripted_peer peer;
      peer.chunk = chunk;
      peer.begin();
      EXPECT_TRUE(peer.drain().empty());  // MPA-61
      peer.feed(from_hex(c.request));
      EXPECT_EQ(peer.side.poll(), std::vector{stream_event::request}) << c.request;
      EXPECT_TRUE(peer.drain().empty());
      peer.side.engine.accept({}, 16, 16, peer.side.now);
      EXPECT_EQ(to_hex(peer.drain()), to_hex(from_hex(c.reply))) << c.request;
    }
  }
}

// MPA-59, MPA-72, MPA-84; field fault B197: private data of every length, both ways.
TEST(PrivateData, EveryLengthBothWays) {
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    const std::size_t most = revision == 1 ? 512 : 508;
    for (std::size_t n = 0; n <= most; ++n) {
      pair_options options;
      options.a.startup.revision = revision;
      engine_pair pair(options);
      pair.request_data = pattern(n, n + 1);
      pair.reply_data = pattern(most - n, n + 2);
      pair.connect();
      const auto got_b = pair.b.engine.peer_frame().private_data();
      const auto got_a = pair.a.engine.peer_frame().private_data();
      ASSERT_EQ(octets(got_b.begin(), got_b.end()), pair.request_data);
      ASSERT_EQ(octets(got_a.begin(), got_a.end()), pair.reply_data);
    }
  }
}

// MPA-94; field fault B149: both sides see the other's numbers, the right way round.
TEST(Depths, AreToldAtBothEnds) {
  pair_options options;
  options.a.startup.ird = 7;
  options.a.startup.ord = 3;
  options.b.startup.ird = 5;
  options.b.startup.ord = 9;
  engine_pair pair(options);
  pair.decide = [&] {
    EXPECT_EQ(pair.b.engine.peer_frame().enhanced->ird, 7);
    EXPECT_EQ(pair.b.engine.peer_frame().enhanced->ord, 3);
    pair.b.engine.accept({}, 5, 9, pair.b.now);
  };
  pair.connect();
  EXPECT_EQ(pair.b.engine.agreement().ird, 5);
  EXPECT_EQ(pair.b.engine.agreement().ord, 7);
  EXPECT_EQ(pair.a.engine.agreement().peer_ird, 5);
  EXPECT_EQ(pair.a.engine.agreement().peer_ord, 7);
  EXPECT_EQ(pair.a.engine.agreement().ird, 7);
  EXPECT_EQ(pair.a.engine.agreement().ord, 3);
}

// MPA-92, MPA-97; field fault B112: what an initiator makes of the Reply.
TEST(Depths, InitiatorFollowsTheReply) {
  struct depth_case {
    std::uint16_t reply_ird, reply_ord, ird, ord;
  };
  for (const auto& c : {depth_case{0, 16, 16, 0}, depth_case{8, 20, 20, 8}, depth_case{0x3FFF, 0x3FFF, 16, 16},
                        depth_case{0x3FFE, 128, 128, 16}}) {
    scripted_peer peer({.initiator = false, .ird = c.reply_ird, .ord = c.reply_ord});
    peer.start();
    EXPECT_EQ(peer.side.engine.agreement().ird, c.ird);
    EXPECT_EQ(peer.side.engine.agreement().ord, c.ord);
  }
}

// Malformed ----------------------------------------------------------------------------------------------------------

struct bad_frame {
  const char* name;
  octets frame;
  mpa::errc why;
};

// E3; MPA-50, MPA-51, MPA-55, MPA-57, MPA-58, MPA-62, MPA-65, MPA-69, MPA-77, SEC-24
std::vector<bad_frame> bad_frames(bool request) {
  const startup_words good{.reply = !request, .flags = flag_c | flag_s, .revision = 2, .ird_word = 16, .ord_word = 16};
  const auto with = [&](auto change) {
    octets frame = startup_frame(good);
    change(frame);
    return frame;
  };
  std::vector<bad_frame> all{
      {"OwnRole", startup_frame({.reply = request}), mpa::errc::same_role},
      {"Revision0", with([](octets& f) { f[17] = std::byte{0}; }), mpa::errc::bad_revision},
      {"Revision3", with([](octets& f) { f[17] = std::byte{3}; }), mpa::errc::bad_revision},
      {"Revision255", with([](octets& f) { f[17] = std::byte{255}; }), mpa::errc::bad_revision},
      {"DataOf513", with([](octets& f) { f[18] = std::byte{2}, f[19] = std::byte{1}; }), mpa::errc::bad_private_data},
      {"DataOf65535", with([](octets& f) { f[18] = f[19] = std::byte{255}; }), mpa::errc::bad_private_data}};
  for (unsigned n = 0; n < 4; ++n)
    all.push_back(
        {"EnhancedTooShort", with([&](octets& f) { f[19] = static_cast<std::byte>(n); }), mpa::errc::bad_private_data});
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 9) continue;  // the octet in which the two keys differ
    all.push_back({"Key", with([&](octets& f) { f[i] ^= std::byte{0x20}; }), mpa::errc::bad_key});
  }
  all.push_back({"Http", octets(from_hex("474554202f20485454502f312e310d0a0d0a0d0a")), mpa::errc::bad_key});
  return all;
}

TEST(Malformed, FramesCloseWithoutAWord) {
  for (const bool peer_initiates : {false, true}) {
    for (const std::size_t chunk : {whole, std::size_t{1}}) {
      for (const bad_frame& bad : bad_frames(peer_initiates)) {
        scripted_peer peer({.initiator = peer_initiates});
        peer.chunk = chunk;
        peer.begin();
        region& own = peer.side.user.add(64);
        peer.side.send(own.element(0, 64));
        peer.feed(bad.frame);
        expect_failed(peer, make_error_code(bad.why), bad.name);
        EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
      }
    }
  }
}

// MPA-89: a responder without revision 2 closes on an enhanced Request. MPA-88: protocol point B11 for the initiator.
TEST(Malformed, RevisionsThatDoNotMeet) {
  {
    rdmap::stream_options options;
    options.startup.revision = 1;
    scripted_peer peer({}, options);
    peer.begin();
    peer.feed(peer.own_frame());
    expect_failed(peer, make_error_code(mpa::errc::bad_revision), "enhanced Request");
  }
  {
    scripted_peer peer({.initiator = false, .revision = 1});
    peer.begin();
    peer.feed(peer.own_frame());
    expect_failed(peer, make_error_code(mpa::errc::not_enhanced), "unenhanced Reply");
  }
  {
    rdmap::stream_options options;
    options.startup.revision = 1;
    scripted_peer peer({.initiator = false, .revision = 2}, options);
    peer.begin();
    peer.feed(peer.own_frame());
    expect_failed(peer, make_error_code(mpa::errc::bad_revision), "enhanced Reply");
  }
}

// MPA-58: the initiator must wait for the Reply.
TEST(Malformed, OctetsBehindTheRequest) {
  for (const std::size_t chunk : {whole, std::size_t{1}}) {
    scripted_peer peer;
    peer.chunk = chunk;
    peer.begin();
    peer.feed(peer.own_frame() + octets(1));
    peer.side.poll();
    EXPECT_EQ(peer.side.engine.error(), mpa::errc::unexpected_octets);
    EXPECT_TRUE(peer.side.told(stream_event::failed));
    peer.side.engine.accept({}, 1, 1, peer.side.now);  // too late, and harmless
    EXPECT_TRUE(peer.drain().empty());
    EXPECT_EQ(peer.side.engine.state(), stream_state::closed);
  }
}

// MPA-74: FIN and reset at every octet of the peer's frame, and while the ULP decides.
TEST(Interrupted, AtEveryOctet) {
  for (const bool peer_initiates : {false, true}) {
    for (const bool reset : {false, true}) {
      const std::size_t size = scripted_peer({.initiator = peer_initiates, .data = pattern(9, 1)}).own_frame().size();
      for (std::size_t n = 0; n <= size; ++n) {
        if (n == size && !peer_initiates) continue;  // then it is established
        scripted_peer peer({.initiator = peer_initiates, .data = pattern(9, 1)});
        peer.begin();
        region& own = peer.side.user.add(64);
        peer.side.send(own.element(0, 64));
        const octets frame = peer.own_frame();
        peer.feed(const_bytes{frame}.first(n));
        reset ? peer.lose() : peer.eof();
        peer.side.poll();
        const auto expected = reset || n == 0 || n == size ? mpa::errc::tcp_lost : mpa::errc::startup_cut_short;
        EXPECT_EQ(peer.side.engine.error(), expected) << n;
        EXPECT_TRUE(peer.side.told(stream_event::failed));
        EXPECT_TRUE(peer.side.told(stream_event::closed));
        EXPECT_FALSE(peer.side.told(stream_event::established));
        EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
        peer.eof();  // once more changes nothing
        peer.lose();
        EXPECT_TRUE(peer.side.poll().empty());
      }
    }
  }
}

// The Reply and what is behind it ------------------------------------------------------------------------------------

// Field fault B055, protocol point B14: FPDUs of a responder that did not wait, in the read that brings the Reply.
TEST(BehindTheReply, FpdusAreTaken) {
  for (const bool markers : {false, true}) {
    for (const std::size_t chunk : {whole, std::size_t{1}}) {
      rdmap::stream_options options;
      options.startup.markers = markers;
      scripted_peer peer({.initiator = false, .data = pattern(100, 2)}, options);
      region& into = peer.side.user.add(300);
      peer.side.user.post_receive(into);
      peer.begin();
      peer.chunk = chunk;
      const octets payload = pattern(300, 3);
      peer.feed(peer.own_frame() + peer.framer.frame(segment(untagged{}, payload)));
      ASSERT_EQ(peer.side.user.receives.size(), 1u);
      EXPECT_EQ(into.copy(), payload);
    }
  }
}

TEST(BehindTheReply, HeldForWantOfAReceive) {
  scripted_peer peer({.initiator = false});
  peer.begin();
  peer.feed(peer.own_frame() + peer.framer.frame(segment(untagged{}, pattern(30, 3))));
  EXPECT_TRUE(peer.side.engine.held());
  EXPECT_FALSE(peer.side.engine.wants_read());
  region& into = peer.side.user.add(300);
  peer.side.user.post_receive(into);
  peer.side.engine.receive_posted(peer.side.now);
  EXPECT_FALSE(peer.side.engine.held());
  ASSERT_EQ(peer.side.user.receives.size(), 1u);
  EXPECT_EQ(into.copy(0, 30), pattern(30, 3));
}

TEST(BehindTheReply, ATerminate) {
  scripted_peer peer({.initiator = false});
  peer.begin();
  peer.feed(peer.own_frame() + peer.framer.frame(terminate_segment(0x20, 6)));
  peer.side.poll();
  EXPECT_EQ(peer.side.events,
            (std::vector{stream_event::established, stream_event::disconnected, stream_event::closed}));
  EXPECT_EQ(peer.side.engine.error(), rdmap::errc::terminated_by_peer);
  EXPECT_TRUE(peer.drain().empty());
}

TEST(BehindTheReply, ABadFpdu) {
  scripted_peer peer({.initiator = false});
  peer.begin();
  octets bad = peer.framer.frame(segment(tagged{}));
  bad.back() ^= std::byte{1};
  peer.feed(peer.own_frame() + bad);
  peer.expect_terminate(terminate_segment(0x20, 2));
}

// MPA-64, MPA-68: the responder is silent until one valid FPDU came: no FPDU, no marker, no Terminate.
TEST(FirstFpdu, OpensTheTransmitSide) {
  for (const bool markers : {false, true}) {
    scripted_peer peer({.markers = markers});
    peer.start();
    region& own = peer.side.user.add(64);
    peer.side.send(own.element(0, 64));
    EXPECT_TRUE(peer.drain().empty());
    const octets first = peer.framer.frame(segment(tagged{}));
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(peer.drain().empty());
      peer.feed(const_bytes{first}.subspan(i, 1));
    }
    EXPECT_EQ(peer.take(), (std::vector<octets>{segment(untagged{}, octets(64))}));
  }
}

TEST(FirstFpdu, ABadOneResets) {
  scripted_peer peer;
  peer.start();
  octets bad = peer.framer.frame(segment(tagged{}));
  bad[5] ^= std::byte{1};
  peer.feed(bad);
  peer.expect_reset();
  EXPECT_EQ(peer.side.engine.error(), mpa::errc::crc_mismatch);
  peer.side.poll();
  EXPECT_TRUE(peer.side.told(stream_event::disconnected));
}

TEST(FirstFpdu, NoTerminateBeforeIt) {
  scripted_peer peer;
  peer.start();
  peer.side.engine.terminate({}, peer.side.now);
  peer.expect_reset();
}

// Rejection ----------------------------------------------------------------------------------------------------------

// MPA-53, MPA-63, MPA-66, MPA-94; field fault B203: the reason and the numbers arrive.
TEST(Rejection, CarriesItsPrivateData) {
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{251}, std::size_t{508}}) {
      pair_options options;
      options.a.startup.revision = revision;
      engine_pair pair(options);
      const octets reason = pattern(n, 4);
      pair.decide = [&] { pair.b.engine.reject(reason, pair.b.now); };
      region& own = pair.a.user.add(64);
      pair.a.engine.bind(pair.a.user, pair.a.ring, {});
      pair.try_connect();
      pair.a.send(own.element(0, 64));  // too late: flushed
      pair.settle();
      EXPECT_EQ(pair.a.events, (std::vector{stream_event::failed, stream_event::closed}));
      EXPECT_EQ(pair.a.engine.error(), mpa::errc::rejected);
      const auto got = pair.a.engine.peer_frame().private_data();
      EXPECT_EQ(octets(got.begin(), got.end()), reason);
      EXPECT_EQ(pair.a.engine.peer_frame().enhanced.has_value(), revision == 2);
      EXPECT_EQ(pair.a.user.sends, std::vector{wr_status::flushed});
      EXPECT_TRUE(pair.runner.a().closed());
      EXPECT_TRUE(pair.runner.b().closed());
    }
  }
}

// SIW-05: siw overlooks a Reply that comes with a FIN, so the rejecting side lets the other close first, for a while.
TEST(Rejection, TheInitiatorClosesFirst) {
  for (const bool it_does : {true, false}) {
    scripted_peer peer;
    peer.begin();
    peer.feed(peer.own_frame());
    peer.side.engine.reject(pattern(3, 1), peer.side.now);
    EXPECT_EQ(peer.side.poll(), (std::vector{stream_event::request, stream_event::failed}));
    EXPECT_FALSE(peer.drain().empty());
    peer.pass(999ms);
    EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::keep);
    it_does ? peer.eof() : peer.pass(1ms);
    EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::close);
    EXPECT_EQ(peer.side.poll(), std::vector{stream_event::closed});
    EXPECT_EQ(peer.side.engine.next_deadline(), never);
  }
}

TEST(Rejection, OfMarkersHasItsOwnError) {  // siw: SIW-12
  rdmap::stream_options options;
  options.startup.markers = true;
  scripted_peer peer({.initiator = false}, options);
  peer.begin();
  peer.feed(
      startup_frame({.reply = true, .flags = flag_r | flag_c | flag_s, .revision = 2, .ird_word = 1, .ord_word = 1}));
  expect_failed(peer, make_error_code(mpa::errc::markers_refused), "markers");
}

// Peer to peer -------------------------------------------------------------------------------------------------------

// MPA-104, MPA-105; field faults B109, B110: the Reply chooses; the vectors are those of the specification work, with
// STag 1 as siw has it.
TEST(PeerToPeer, TheInitiatorSendsWhatTheReplyChose) {
  struct rtr_case {
    mpa::rtr_set offered, chosen;
    octets message;
    std::uint32_t next_send, next_read;
  };
  const octets write = segment(tagged{.stag = 1});
  const octets read = read_request_segment(1, {.sink = 1, .source = 1});
  const octets send = segment(untagged{});
  const mpa::rtr_set all{true, true, true};
  for (const auto& c : {rtr_case{all, {.send = true}, send, 2, 1}, rtr_case{all, {.write = true}, write, 1, 1},
                        rtr_case{all, {.read = true}, read, 1, 2}, rtr_case{all, all, write, 1, 1},
                        rtr_case{{.send = true, .read = true}, all, read, 1, 2}}) {
    rdmap::stream_options options;
    options.startup.peer_to_peer = true;
    options.startup.rtr = c.offered;
    scripted_peer peer({.initiator = false, .peer_to_peer = true, .rtr = c.chosen}, options);
    region& own = peer.side.user.add(64);
    peer.begin();
    peer.side.read(own.element(0, 4), {stag{5}, 6});
    peer.side.send(own.element(0, 4));
    peer.feed(peer.own_frame());
    const auto units = peer.take();
    ASSERT_EQ(units.size(), 3u);
    EXPECT_EQ(to_hex(units[0]), to_hex(c.message));
    EXPECT_EQ(
        units[1],
        read_request_segment(
            c.next_read, {.sink = own.key.value, .sink_offset = own.base, .size = 4, .source = 5, .source_offset = 6}));
    EXPECT_EQ(units[2], segment(untagged{.sequence = c.next_send}, octets(4)));
    // The answer to a Read RTR completes nothing (field fault B095).
    if (c.next_read == 2) peer.send(segment(tagged{.op = 2, .stag = 1}));
    EXPECT_TRUE(peer.side.user.sends.empty());
    peer.send(segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, octets(4)));
    EXPECT_EQ(peer.side.user.sends, (std::vector{wr_status::success, wr_status::success}));
  }
}

// MPA-68, MPA-101, MPA-105: each kind opens the responder, uses no receive, and the ULP never sees it.
TEST(PeerToPeer, TheResponderTakesEachKind) {
  const std::vector<std::pair<mpa::rtr_set, octets>> kinds{
      {{.write = true}, segment(tagged{})},
      {{.write = true}, segment(tagged{.stag = 0xFFFFFFFF, .offset = UINT64_MAX})},
      {{.read = true}, read_request_segment(1, {.sink = 9})},
      {{.send = true}, segment(untagged{})},
      {{.send = true}, octets{}}};  // RFC 6581's words: a zero-length FULPDU
  for (const bool with_receive : {false, true}) {
    for (const auto& [kind, message] : kinds) {
      scripted_peer peer({.peer_to_peer = true, .rtr = kind});
      region& into = peer.side.user.add(64);
      if (with_receive) peer.side.user.post_receive(into);
      peer.start();
      EXPECT_EQ(peer.side.events, std::vector{stream_event::request}) << "established comes with the RTR";
      peer.send(message);
      EXPECT_EQ(peer.side.poll(), std::vector{stream_event::established}) << to_hex(message);
      EXPECT_EQ(peer.side.user.receives_taken(), 0u);
      const auto units = peer.take();
      EXPECT_EQ(units.size(), kind.read ? 1u : 0u);
      if (!with_receive) peer.side.user.post_receive(into);
      // The next Send follows on in its queue.
      const bool counted = kind.send && !message.empty();
      peer.send(segment(untagged{.sequence = counted ? 2u : 1u}));
      EXPECT_EQ(peer.side.user.receives.size(), 1u);
      EXPECT_FALSE(peer.side.engine.ended()) << peer.side.engine.error().message();
    }
  }
}

// MPA-98: the Read RTR finds a slot though IRD would be 0.
TEST(PeerToPeer, ReadAsRtrWithIrd0) {
  rdmap::stream_options options;
  options.startup.ird = 0;
  scripted_peer peer({.ord = 0, .peer_to_peer = true, .rtr = {.read = true}}, options);
  peer.start();
  peer.send(read_request_segment(1, {.sink = 9}));
  EXPECT_EQ(peer.take().size(), 1u);
}

// A zero-length Send or FPDU is nothing special where no RTR of that kind was agreed.
TEST(PeerToPeer, OnlyWhatWasAgreed) {
  for (const bool agreed_write : {false, true}) {
    scripted_peer peer({.peer_to_peer = agreed_write, .rtr = {.write = true}});
    region& into = peer.side.user.add(64);
    peer.side.user.post_receive(into);
    peer.start();
    peer.send(segment(untagged{}));
    EXPECT_EQ(peer.side.user.receives.size(), 1u);
    peer.send({});
    peer.expect_terminate(terminate_segment(0x10, 0));
  }
}

// Time ---------------------------------------------------------------------------------------------------------------

// MPA-70, MPA-71, SEC-26; field fault B134: silence, and a frame that drips.
TEST(Timeouts, OfTheFrames) {
  for (const bool peer_initiates : {false, true}) {
    const duration limit = peer_initiates ? 5s : 10s;
    for (const bool drip : {false, true}) {
      scripted_peer peer({.initiator = peer_initiates});
      peer.begin();
      const octets frame = peer.own_frame();
      std::size_t sent = 0;
      const duration step = limit / 10;
      for (int i = 0; i < 9; ++i) {
        peer.pass(step);
        if (drip) sent += peer.feed(const_bytes{frame}.subspan(sent, 1));
        EXPECT_FALSE(peer.side.engine.ended());
      }
      peer.pass(step);
      expect_failed(peer, make_error_code(mpa::errc::startup_timeout), drip ? "drip" : "silence");
    }
  }
}

// MPA-68, SIW-04: a responder that says nothing gets a zero-length Write, once: it may not speak first, or (siw) has
// not noticed what it was sent. One that was heard gets none.
TEST(Timeouts, OfTheRespondersSilence) {
  const octets empty_write = segment(tagged{.stag = 1});
  for (const auto& [peer_to_peer, says_something, heard] : {std::tuple{false, false, false},
                                                            {false, false, true},
                                                            {false, true, false},
                                                            {false, true, true},
                                                            {true, false, false},
                                                            {true, true, false},
                                                            {true, false, true}}) {
    rdmap::stream_options options;
    options.rtr_delay = 20ms;
    options.startup.peer_to_peer = peer_to_peer;
    options.startup.rtr = {.write = true};
    scripted_peer peer({.initiator = false, .peer_to_peer = peer_to_peer, .rtr = {.write = true}}, options);
    region& own = peer.side.user.add(64);
    peer.start();
    EXPECT_EQ(peer.take().size(), peer_to_peer ? 1u : 0u);
    if (says_something) {
      peer.side.send(own.element(0, 64));
      EXPECT_EQ(peer.take().size(), 1u);
    }
    if (heard) peer.send(empty_write);
    peer.pass(19ms);
    EXPECT_TRUE(peer.take().empty());
    peer.pass(1ms);
    EXPECT_EQ(peer.take(), std::vector<octets>(heard ? 0 : 1, empty_write));
    peer.pass(1h);
    EXPECT_TRUE(peer.take().empty());
  }
}

TEST(Timeouts, TheUlpMayDecideForEver) {
  scripted_peer peer;
  peer.begin();
  peer.feed(peer.own_frame());
  EXPECT_EQ(peer.side.engine.next_deadline(), never);
  peer.pass(24h);
  EXPECT_EQ(peer.side.engine.state(), stream_state::deciding);
}

// MPA-73: the first FPDU has a limit in the peer-to-peer model, where it is not the ULP's business.
TEST(Timeouts, OfTheFirstFpdu) {
  for (const bool peer_to_peer : {false, true}) {
    scripted_peer peer({.peer_to_peer = peer_to_peer, .rtr = {.write = true}});
    peer.start();
    peer.pass(29s);
    EXPECT_EQ(peer.side.engine.state(), stream_state::wait_first_fpdu);
    peer.pass(1s);
    if (peer_to_peer) {
      peer.expect_reset();
      EXPECT_EQ(peer.side.engine.error(), mpa::errc::first_fpdu_timeout);
      peer.side.poll();
      EXPECT_EQ(peer.side.events, (std::vector{stream_event::request, stream_event::failed, stream_event::closed}));
    } else {
      EXPECT_EQ(peer.side.engine.state(), stream_state::wait_first_fpdu);
      EXPECT_EQ(peer.side.engine.next_deadline(), never);
    }
  }
}

TEST(Timeouts, NoneWhenSetToZero) {
  rdmap::stream_options options;
  options.reply_timeout = options.request_timeout = options.first_fpdu_timeout = 0s;
  for (const bool peer_initiates : {false, true}) {
    scripted_peer peer({.initiator = peer_initiates}, options);
    peer.begin();
    EXPECT_EQ(peer.side.engine.next_deadline(), never);
  }
}

// The end of it ------------------------------------------------------------------------------------------------------

// Field fault B142: close and abort in each state of start-up.
TEST(GivenUp, InEveryState) {
  for (const bool abort : {false, true}) {
    for (int state = 0; state < 3; ++state) {
      scripted_peer peer({.initiator = state != 0});
      peer.begin();
      if (state == 2) peer.feed(peer.own_frame());
      region& own = peer.side.user.add(64);
      peer.side.send(own.element(0, 64));
      abort ? peer.side.engine.abort(peer.side.now) : peer.side.engine.close(peer.side.now);
      peer.expect_reset();
      peer.side.poll();
      EXPECT_TRUE(peer.side.told(stream_event::failed));
      EXPECT_TRUE(peer.side.told(stream_event::closed));
      EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::flushed});
      EXPECT_EQ(peer.side.engine.error(), std::errc::connection_aborted);
      peer.side.engine.accept({}, 1, 1, peer.side.now);
      peer.side.engine.reject({}, peer.side.now);
      EXPECT_TRUE(peer.side.poll().empty());
    }
    scripted_peer idle;
    abort ? idle.side.engine.abort(idle.side.now) : idle.side.engine.close(idle.side.now);
    idle.expect_reset();
  }
}

// A responder of which nobody took the consumer's part: it may be rejected or die without one.
TEST(GivenUp, WithoutAConsumer) {
  mpa::rx_memory memory;
  mpa::tx_batch_pool batches;
  for (int how = 0; how < 4; ++how) {
    rdmap::stream engine({}, memory, batches);
    engine.respond({});
    const octets frame = startup_frame({});
    if (how > 0) {
      std::ranges::copy(frame, engine.rx_window().begin());
      engine.rx_commit(frame.size(), {});
    }
    if (how == 1) {
      engine.reject(pattern(3, 1), {});
      engine.handle_eof({});
    }
    if (how == 2) engine.abort({});
    if (how == 3) engine.handle_lost(std::make_error_code(std::errc::connection_reset), {});
    if (how > 0) {
      EXPECT_EQ(engine.state(), stream_state::closed);
    }
  }
}

}  // namespace
}  // namespace iwarp::stream_test
