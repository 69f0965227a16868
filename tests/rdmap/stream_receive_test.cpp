// What a stream does with octets as they come: cut anywhere, damaged anywhere, ended anywhere; receives that are
// missing; the peer's Terminate in every shape; the limit of time for one FPDU.
#include <gtest/gtest.h>

#include "tests/rdmap/scripted_peer.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/random.hpp"

namespace iwarp::stream_test {
namespace {

using rdmap::stream_event;
using rdmap::stream_state;
using rdmap::wr_status;
using namespace std::chrono_literals;

constexpr std::uint32_t shared = 0x11223344;
constexpr std::uint64_t base = 0x1000;

// A conversation of the peer, with all that it touches: a Write, a Send in three segments, a Read Request, a Send with
// Invalidate.
struct conversation {
  explicit conversation(scripted_peer& peer)
      : target(peer.side.user.add(600, {.remote_read = true, .remote_write = true}, shared, base)),
        lent(peer.side.user.add(16, {.remote_write = true}, 0x55667788)),
        into(peer.side.user.add(600)) {
    peer.side.user.post_receive({into.element(0, 300)});
    peer.side.user.post_receive({into.element(300, 300)});
  }
  static std::vector<octets> ulpdus() {
    const octets data = pattern(250, 4);
    const auto part = [&](std::size_t from, std::size_t to) {
      return octets(data.begin() + static_cast<std::ptrdiff_t>(from), data.begin() + static_cast<std::ptrdiff_t>(to));
    };
    return {segment(tagged{.stag = shared, .offset = base + 7}, pattern(501, 3)),
            segment(untagged{.last = false}, part(0, 100)),
            segment(untagged{.offset = 100, .last = false}, part(100, 101)),
            segment(untagged{.offset = 101}, part(101, 250)),
            read_request_segment(
                1, {.sink = 5, .sink_offset = 6, .size = 501, .source = shared, .source_offset = base + 7}),
            segment(untagged{.op = 4, .sequence = 2, .invalidate = 0x55667788}, pattern(9, 5))};
  }
  void check(scripted_peer& peer) const {
    EXPECT_EQ(target.copy(7, 501), pattern(501, 3));
    EXPECT_EQ(into.copy(0, 250), pattern(250, 4));
    EXPECT_EQ(into.copy(300, 9), pattern(9, 5));
    EXPECT_FALSE(lent.valid);
    EXPECT_EQ(peer.side.user.receives.size(), 2u);
    EXPECT_EQ(peer.take(), (std::vector<octets>{segment(tagged{.op = 2, .stag = 5, .offset = 6}, pattern(501, 3))}));
  }
  region &target, &lent, &into;
};

octets framed(scripted_peer& peer) {
  octets stream;
  for (const octets& u : conversation::ulpdus()) stream = std::move(stream) + peer.framer.frame(u);
  return stream;
}

rdmap::stream_options with_markers(bool markers) {
  rdmap::stream_options options;
  options.startup.markers = markers;
  return options;
}

// MPA-07, MPA-28, MPA-41, MPA-42, MPA-44: cut in two at every octet, and into reads of every small size.
TEST(Cut, AtEveryOctet) {
  for (const bool markers : {false, true}) {
    const std::size_t length = [&] {
      scripted_peer peer({}, with_markers(markers));
      return framed(peer).size();
    }();
    for (std::size_t cut = 0; cut <= length; ++cut) {
      scripted_peer peer({}, with_markers(markers));
      const conversation talk(peer);
      peer.start();
      const octets stream = framed(peer);
      peer.feed(const_bytes{stream}.first(cut));
      peer.feed(const_bytes{stream}.subspan(cut));
      talk.check(peer);
      ASSERT_FALSE(HasFailure()) << "cut at " << cut;
    }
    for (std::size_t chunk = 1; chunk < 40; ++chunk) {
      scripted_peer peer({}, with_markers(markers));
      const conversation talk(peer);
      peer.start();
      peer.chunk = chunk;
      peer.feed(framed(peer));
      talk.check(peer);
      ASSERT_FALSE(HasFailure()) << "reads of " << chunk;
    }
  }
}

// MPA-36, MPA-43, MPA-75, MPA-78, MPA-79, E1: flip every bit of an FPDU of each kind. Nothing of it is placed or
// delivered, and the one Terminate says so. A damaged length makes the stream wait for octets that do not come.
TEST(Damage, EveryBitOfEveryFpdu) {
  for (const bool markers : {false, true}) {
    const auto units = conversation::ulpdus();
    for (const octets& unit : {units[0], units[1], units[4], units[5]}) {
      const octets ulpdu =
          unit == units[5] ? segment(untagged{.op = 4, .invalidate = 0x55667788}, pattern(9, 5)) : unit;
      const std::size_t bits = [&] {
        scripted_peer peer({}, with_markers(markers));
        (void)peer.framer.frame(segment(tagged{}));  // as open() does
        return peer.framer.frame(ulpdu).size() * 8;
      }();
      for (std::size_t bit = 0; bit<bits; bit += ulpdu.size()> 200 && bit > 800 && bit + 400 < bits ? 41 : 1) {
        scripted_peer peer({}, with_markers(markers));
        const conversation talk(peer);
        peer.open();
        octets frame = peer.framer.frame(ulpdu);
        frame[bit / 8] ^= static_cast<std::byte>(0x80u >> bit % 8);
        peer.feed(frame);
        ASSERT_EQ(talk.target.copy(), octets(600)) << "bit " << bit;
        ASSERT_EQ(talk.into.copy(), octets(600)) << "bit " << bit;
        ASSERT_TRUE(talk.lent.valid) << "bit " << bit;
        ASSERT_TRUE(peer.side.user.receives.empty() || peer.side.user.receives[0].result.status == wr_status::flushed);
        if (!peer.side.engine.ended()) {
          // Only a length that grew leaves it waiting; with more octets it is found out.
          peer.feed(octets(70'000));
        }
        ASSERT_TRUE(peer.side.engine.ended()) << "bit " << bit;
        ASSERT_EQ(peer.side.engine.error(), mpa::errc::crc_mismatch) << "bit " << bit;
        peer.expect_terminate(terminate_segment(0x20, 2));
        ASSERT_FALSE(HasFailure()) << "bit " << bit;
      }
    }
  }
}

// MPA-14, MPA-34: with CRC off the field may hold anything. MPA-12: PAD may too, CRC or not.
TEST(Damage, OfWhatIsNotLookedAt) {
  for (const bool crc : {false, true}) {
    rdmap::stream_options options;
    options.startup.crc = crc;
    scripted_peer peer({.crc = crc}, options);
    region& into = peer.side.user.add(64);
    peer.side.user.post_receive(into);
    peer.start();
    octets frame = peer.framer.frame(segment(untagged{}, pattern(5, 1)));
    const std::size_t pad_at = 2 + 18 + 5;
    for (std::size_t i = pad_at; i + 4 < frame.size(); ++i) frame[i] = std::byte{0xEE};
    frame.resize(frame.size() - 4);
    std::uint32_t field = crc ? reference_crc32c(frame) : 0x12345678;
    for (int i = 0; i < 4; ++i, field >>= 8) frame.push_back(static_cast<std::byte>(field));
    peer.feed(frame);
    ASSERT_EQ(peer.side.user.receives.size(), 1u);
    EXPECT_EQ(into.copy(0, 5), pattern(5, 1));
  }
}

// DDP-02, RDMAP-02, RDMAP-07: reserved bits, and the Invalidate STag of messages that have none, mean nothing.
TEST(Damage, OfReservedBits) {
  scripted_peer peer;
  region& into = peer.side.user.add(64);
  region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
  peer.side.user.post_receive(into);
  peer.start();
  octets send = segment(untagged{.invalidate = shared}, pattern(5, 1));
  octets write = segment(tagged{.stag = shared, .offset = base}, pattern(6, 2));
  for (octets* u : {&send, &write}) {
    (*u)[0] |= std::byte{0x3C};
    (*u)[1] |= std::byte{0x30};
  }
  peer.send(send);
  peer.send(write);
  EXPECT_EQ(into.copy(0, 5), pattern(5, 1));
  EXPECT_EQ(target.copy(0, 6), pattern(6, 2));
  EXPECT_TRUE(target.valid);
}

// E2; MPA-76: a marker that points elsewhere, in an FPDU whose CRC is right.
TEST(Damage, OfMarkersWithTheCrcRepaired) {
  rdmap::stream_options options = with_markers(true);
  options.startup.crc = false;
  scripted_peer peer({.crc = false}, options);
  region& target = peer.side.user.add(600, {.remote_write = true}, shared, base);
  peer.start();
  octets frame = peer.framer.frame(segment(tagged{.stag = shared, .offset = base}, pattern(600, 1)));
  frame[512 + 3] ^= std::byte{4};
  peer.feed(frame);
  EXPECT_EQ(target.copy(), octets(600));
  EXPECT_EQ(peer.side.engine.error(), mpa::errc::marker_mismatch);
  peer.expect_reset();  // it was the first FPDU, so nothing may be said
}

TEST(Damage, OfAMarkerLaterOn) {
  scripted_peer peer({}, with_markers(true));
  region& target = peer.side.user.add(600, {.remote_write = true}, shared, base);
  peer.open();
  octets frame = peer.framer.frame(segment(tagged{.stag = shared, .offset = base}, pattern(600, 1)));
  const std::size_t marker_at = 512 - (peer.framer.position() - frame.size()) % 512;
  frame[marker_at + 3] ^= std::byte{8};
  std::uint32_t crc = reference_crc32c(const_bytes{frame}.first(frame.size() - 4));
  for (std::size_t i = 0; i < 4; ++i, crc >>= 8) frame[frame.size() - 4 + i] = static_cast<std::byte>(crc);
  peer.feed(frame);
  EXPECT_EQ(target.copy(), octets(600));
  peer.expect_terminate(terminate_segment(0x20, 3));
}

// MPA-74, MPA-80, DDP-42, RDMAP-67: FIN and reset at every octet, with receives taken and requests outstanding.
TEST(Ended, AtEveryOctet) {
  for (const bool reset : {false, true}) {
    const std::size_t length = [&] {
      scripted_peer peer;
      return framed(peer).size();
    }();
    for (std::size_t n = 0; n <= length; ++n) {
      for (const bool work : {false, true}) {
        scripted_peer peer;
        const conversation talk(peer);
        peer.start();
        const octets stream = framed(peer);
        peer.feed(const_bytes{stream}.first(n));
        const std::size_t delivered = peer.side.user.receives.size();
        peer.drain();
        region& own = peer.side.user.add(64);
        if (work) {
          peer.side.read(own.element(0, 64), {stag{1}, 0});
          peer.side.send(own.element(0, 64));
        }
        reset ? peer.lose() : peer.eof();
        peer.drain();
        peer.side.poll();
        ASSERT_TRUE(peer.side.told(stream_event::disconnected)) << n;
        ASSERT_TRUE(peer.side.engine.ended());
        ASSERT_EQ(peer.side.user.sends.size(), work ? 2u : 0u);
        ASSERT_EQ(peer.side.user.receives.size(), peer.side.user.receives_taken());
        for (std::size_t i = delivered; i < peer.side.user.receives.size(); ++i) {
          ASSERT_EQ(peer.side.user.receives[i].result.status, wr_status::flushed);
        }
        if (reset) {
          ASSERT_EQ(peer.side.engine.error(), mpa::errc::tcp_lost);
        }
        if (n == length && !reset && !work) {
          ASSERT_EQ(peer.side.engine.error(), std::error_code{});  // VRB-04
        }
        if (n == length && !reset && work) {
          ASSERT_EQ(peer.side.engine.error(), rdmap::errc::peer_closed_with_work);
        }
        // Once more, and time: nothing is told twice.
        peer.pass(60s);
        peer.lose();
        peer.eof();
        peer.side.poll();
        ASSERT_EQ(peer.side.engine.state(), stream_state::closed) << n;
        ASSERT_FALSE(HasFailure()) << n;
      }
    }
  }
}

// Receives that are missing ------------------------------------------------------------------------------------------

// Field faults B170, B217: the peer is held back, nothing is lost.
TEST(Held, UntilAReceiveIsPosted) {
  scripted_peer peer;
  peer.start();
  octets stream;
  for (std::uint32_t i = 1; i <= 100; ++i)
    stream = std::move(stream) + peer.framer.frame(segment(untagged{.sequence = i}, pattern(i, i)));
  peer.feed(stream);
  EXPECT_TRUE(peer.side.engine.held());
  EXPECT_FALSE(peer.side.engine.wants_read());
  EXPECT_TRUE(peer.side.engine.rx_window().empty());
  EXPECT_EQ(peer.side.engine.counters().receive_holds, 1u);
  peer.side.engine.receive_posted(peer.side.now);  // one posted and taken by another stream of a shared queue
  EXPECT_TRUE(peer.side.engine.held());
  for (std::uint32_t i = 1; i <= 100; ++i) {
    region& into = peer.side.user.add(100);
    peer.side.user.post_receive(into);
    peer.side.engine.receive_posted(peer.side.now);
    ASSERT_EQ(peer.side.user.receives.size(), i);
    ASSERT_EQ(into.copy(0, i), pattern(i, i));
    ASSERT_EQ(peer.side.engine.held(), i != 100);
  }
  EXPECT_TRUE(peer.side.engine.wants_read());
  peer.pass(1h);
  EXPECT_FALSE(peer.side.engine.ended());
}

// What stands in front of the held message is done; requests of this side go on.
TEST(Held, TransmitGoesOn) {
  scripted_peer peer;
  region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
  peer.start();
  peer.feed(peer.framer.frame(segment(tagged{.stag = shared, .offset = base}, pattern(8, 1))) +
            peer.framer.frame(segment(untagged{}, pattern(8, 1))));
  EXPECT_EQ(target.copy(0, 8), pattern(8, 1));
  region& own = peer.side.user.add(64);
  peer.side.send(own.element(0, 64));
  EXPECT_EQ(peer.take().size(), 1u);
  EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::success});
}

// FIN behind a held message: the message first.
TEST(Held, FinWaitsForTheMessage) {
  scripted_peer peer;
  peer.start();
  peer.send(segment(untagged{}, pattern(8, 1)));
  peer.eof();
  EXPECT_TRUE(peer.side.poll().empty());
  region& into = peer.side.user.add(100);
  peer.side.user.post_receive(into);
  peer.side.engine.receive_posted(peer.side.now);
  EXPECT_EQ(peer.side.user.receives.size(), 1u);
  EXPECT_EQ(peer.side.poll(), (std::vector{stream_event::disconnected, stream_event::closed}));
  EXPECT_EQ(peer.side.engine.error(), std::error_code{});
}

TEST(Held, ResetAndAbortEndIt) {
  for (const bool abort : {false, true}) {
    scripted_peer peer;
    peer.start();
    peer.send(segment(untagged{}, pattern(8, 1)));
    abort ? peer.side.engine.abort(peer.side.now) : peer.lose();
    EXPECT_EQ(peer.side.poll(), (std::vector{stream_event::disconnected, stream_event::closed}));
    peer.side.engine.receive_posted(peer.side.now);
  }
}

// The consumer closes while a message is held: it is dropped, the end is bounded, and is no success.
TEST(Held, CloseDropsTheMessage) {
  scripted_peer peer;
  peer.start();
  peer.send(segment(untagged{}, pattern(8, 1)));
  region& own = peer.side.user.add(64);
  peer.side.send(own.element(0, 64));
  peer.side.engine.close(peer.side.now);
  EXPECT_EQ(peer.take().size(), 1u);
  EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::shutdown_write);
  EXPECT_TRUE(peer.side.engine.wants_read());
  EXPECT_GT(peer.send(segment(untagged{.sequence = 2}, pattern(8, 1))), 0u);
  region& into = peer.side.user.add(64);
  peer.side.user.post_receive(into);
  peer.side.engine.receive_posted(peer.side.now);
  peer.eof();
  EXPECT_EQ(peer.side.poll(), (std::vector{stream_event::disconnected, stream_event::closed}));
  EXPECT_EQ(peer.side.engine.error(), rdmap::errc::stream_catastrophic);
  EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::close);
  EXPECT_TRUE(peer.side.user.receives.empty());
}

// E15; VRB-34: exactly full works, in one segment and in many; one octet more does not, in the first or a later one.
TEST(ReceiveSize, ExactlyFullAndOneMore) {
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{99}, std::size_t{100}}) {
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
      scripted_peer peer;
      region& into = peer.side.user.add(300);
      peer.side.user.post_receive({into.element(100, 60), into.element(0, 0), into.element(200, 40)});
      peer.open();
      const octets data = pattern(100 + more, 3);
      const octets first(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(cut));
      const octets second(data.begin() + static_cast<std::ptrdiff_t>(cut), data.end());
      peer.send(segment(untagged{.last = false}, first));
      const octets last = segment(untagged{.offset = static_cast<std::uint32_t>(cut)}, second);
      peer.send(last);
      ASSERT_EQ(peer.side.user.receives.size(), 1u);
      const auto& done = peer.side.user.receives[0].result;
      if (more == 0) {
        EXPECT_EQ(done.status, wr_status::success);
        EXPECT_EQ(into.copy(100, 60) + into.copy(200, 40), data);
      } else {
        EXPECT_EQ(done.status, wr_status::local_length);
        peer.expect_terminate(terminate_segment(0x12, 5, last));
      }
    }
  }
}

// A Read Request that is too long is not the fault of the receive that is being filled.
TEST(ReceiveSize, OfAnotherQueue) {
  scripted_peer peer;
  region& into = peer.side.user.add(300);
  peer.side.user.post_receive(into);
  peer.open();
  peer.send(segment(untagged{.last = false}, pattern(10, 1)));
  const octets request = read_request_segment(1, {}) + octets(4);
  peer.send(request);
  peer.expect_terminate(terminate_segment(0x12, 5, request));
  ASSERT_EQ(peer.side.user.receives.size(), 1u);
  EXPECT_EQ(peer.side.user.receives[0].result.status, wr_status::flushed);
}

// A gap or an overlap in MO inside a message (protocol point B17).
TEST(ReceiveSize, GapsInTheMessage) {
  for (const std::uint32_t offset : {0u, 9u, 11u, 0xFFFFFFFFu}) {
    scripted_peer peer;
    region& into = peer.side.user.add(300);
    peer.side.user.post_receive(into);
    peer.open();
    peer.send(segment(untagged{.last = false}, pattern(10, 1)));
    const octets bad = segment(untagged{.offset = offset}, pattern(10, 1));
    peer.send(bad);
    peer.expect_terminate(terminate_segment(0x12, 4, bad));
    EXPECT_EQ(into.copy(10, 290), octets(290));
  }
}

// The peer's Terminate -----------------------------------------------------------------------------------------------

// RDMAP-41, RDMAP-42, RDMAP-49, RDMAP-69, VRB-11, VRB-37: every combination of M, D, R and every truncation; no receive
// is needed and none is used; no answer; garbage behind it, in the same read, changes nothing.
TEST(TerminateArrives, InEveryShape) {
  const octets offender = segment(untagged{.op = 1, .queue = 1, .sequence = 7});
  const octets header(offender.begin(), offender.begin() + 18);
  for (unsigned control = 0; control < 256; ++control) {
    const octets body = octets{std::byte{0x12}, std::byte{0x02}, static_cast<std::byte>(control), std::byte{0xFF}} +
                        be16(46) + header + pattern(28, 1) + pattern(30, 2);
    for (std::size_t n = 4; n <= body.size(); n += control % 16 == 0 ? 1 : 13) {
      scripted_peer peer;
      region& into = peer.side.user.add(64);
      peer.start();
      peer.side.user.post_receive(into);
      region& own = peer.side.user.add(64);
      peer.side.read(own.element(0, 4), {stag{1}, 0});
      octets bad = peer.framer.frame(
          segment(untagged{.op = 7, .queue = 2}, {body.begin(), body.begin() + static_cast<std::ptrdiff_t>(n)}));
      octets behind = peer.framer.frame(segment(untagged{.op = 15}));
      behind.back() ^= std::byte{1};
      peer.feed(bad + peer.framer.frame(segment(untagged{})) + behind);
      ASSERT_TRUE(peer.side.engine.received_terminate());
      EXPECT_EQ(peer.side.engine.received_terminate()->code, (rdmap::term_code{1, 2, 2}));
      peer.side.poll();
      EXPECT_EQ(peer.side.events, (std::vector{stream_event::request, stream_event::established,
                                               stream_event::disconnected, stream_event::closed}));
      EXPECT_EQ(peer.side.engine.error(), rdmap::errc::terminated_by_peer);
      EXPECT_TRUE(peer.drain().empty());
      EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::close);
      EXPECT_EQ(peer.side.user.receives_taken(), 0u);
      EXPECT_EQ(peer.side.user.sends.size(), 1u);
      ASSERT_FALSE(HasFailure()) << control << " " << n;
    }
  }
}

// SIW: the word as a little-endian siw lays it out.
TEST(TerminateArrives, AsSiwSendsIt) {
  scripted_peer peer;
  peer.start();
  peer.send(
      segment(untagged{.op = 7, .queue = 2}, octets{std::byte{0x21}, std::byte{0x03}, std::byte{0x03}, std::byte{0}}));
  ASSERT_TRUE(peer.side.engine.received_terminate());
  EXPECT_EQ(peer.side.engine.received_terminate()->swapped_reading, (rdmap::term_code{1, 2, 3}));
}

// The status table (field fault B088): the request that the Terminate names, by its MSN, and only that one.
TEST(TerminateArrives, NamesAReadRequest) {
  struct naming {
    std::uint8_t layer_and_type, code;
    std::uint32_t sequence;
    std::vector<wr_status> reads;
  };
  const auto access = wr_status::remote_access;
  const auto flushed = wr_status::flushed;
  for (const auto& c : {naming{0x01, 0, 1, {access, flushed, flushed}}, naming{0x01, 2, 2, {flushed, access, flushed}},
                        naming{0x01, 1, 3, {flushed, flushed, access}},
                        naming{0x02, 7, 1, {wr_status::remote_operation, flushed, flushed}},
                        naming{0x12, 2, 2, {flushed, wr_status::remote_invalid_request, flushed}}}) {
    scripted_peer peer;
    region& own = peer.side.user.add(64);
    peer.open();
    for (int i = 0; i < 3; ++i) peer.side.read(own.element(0, 4), {stag{1}, 0});
    EXPECT_EQ(peer.take().size(), 3u);
    peer.send(terminate_segment(c.layer_and_type, c.code, read_request_segment(c.sequence, {}), c.layer_and_type == 1));
    EXPECT_EQ(peer.side.user.sends, c.reads);
  }
}

// SIW-11: siw's Terminate for a Read Request, octet for octet but for the STags: the word reversed, and the length of
// the request where its MSN should be. The request it shows tells the Reads apart; one answered in part shows the rest
// of it.
TEST(TerminateArrives, NamesAReadRequestAsSiwDoes) {
  for (std::size_t guilty = 0; guilty < 3; ++guilty) {
    for (const unsigned sent : {0u, 3u}) {
      scripted_peer peer;
      region& own = peer.side.user.add(64);
      peer.open();
      for (std::size_t i = 0; i < 3; ++i) peer.side.read(own.element(8 * i, 4), {stag{1}, 0});
      const auto requests = peer.take();
      ASSERT_EQ(requests.size(), 3u);
      octets request(requests[guilty].begin() + 18, requests[guilty].end());
      request[11] |= static_cast<std::byte>(sent);
      request[15] = static_cast<std::byte>(4 - sent);
      peer.send(segment(untagged{.op = 7, .queue = 2},
                        test_support::from_hex("10000700 0000 4141 00000000 00000001 00000002 00000000") + request));
      std::vector<wr_status> want(3, wr_status::flushed);
      want[guilty] = wr_status::remote_access;
      EXPECT_EQ(peer.side.user.sends, want) << guilty << " " << sent;
    }
  }
}

// Field fault B056: a Send that TCP has not taken whole when the peer complains of it.
TEST(TerminateArrives, NamesASend) {
  scripted_peer peer;
  region& own = peer.side.user.add(5000);
  peer.open();
  peer.side.send(own.element(0, 10));
  peer.side.send(own.element(0, 5000));
  peer.drain(3000);
  peer.send(terminate_segment(0x12, 5, segment(untagged{.sequence = 2})));
  EXPECT_EQ(peer.side.user.sends, (std::vector{wr_status::success, wr_status::remote_invalid_request}));
  EXPECT_TRUE(peer.drain().empty());
}

// Time ---------------------------------------------------------------------------------------------------------------

// SEC-26: an FPDU once begun must end, however slowly it drips; between FPDUs silence may last.
TEST(StuckFpdu, EndsTheStream) {
  for (const bool drip : {false, true}) {
    scripted_peer peer;
    peer.open();
    peer.pass(1h);
    EXPECT_FALSE(peer.side.engine.ended());
    const octets frame = peer.framer.frame(segment(untagged{}, pattern(500, 1)));
    peer.feed(const_bytes{frame}.first(3));
    for (int i = 0; i < 29; ++i) {
      peer.pass(1s);
      if (drip) peer.feed(const_bytes{frame}.subspan(3 + static_cast<std::size_t>(i), 1));
      ASSERT_FALSE(peer.side.engine.ended());
    }
    peer.pass(1s);
    peer.expect_reset();
    EXPECT_EQ(peer.side.engine.error(), mpa::errc::fpdu_timeout);
  }
}

TEST(StuckFpdu, SlowIsNotStuck) {
  scripted_peer peer;
  region& target = peer.side.user.add(64, {.remote_write = true}, shared, base);
  peer.open();
  // Every read ends inside an FPDU, and every read brings one.
  octets stream;
  for (int i = 0; i < 30; ++i)
    stream = std::move(stream) + peer.framer.frame(segment(tagged{.stag = shared, .offset = base}, pattern(40, 1)));
  const std::size_t one = stream.size() / 30;
  peer.feed(const_bytes{stream}.first(5));
  for (std::size_t i = 0; i < 29; ++i) {
    peer.pass(20s);
    peer.feed(const_bytes{stream}.subspan(5 + i * one, one));
    ASSERT_FALSE(peer.side.engine.ended()) << i;
  }
  EXPECT_EQ(target.copy(0, 40), pattern(40, 1));
}

TEST(StuckFpdu, HeldIsNotStuck) {
  scripted_peer peer;
  peer.open();
  const octets second =
      peer.framer.frame(segment(untagged{}, pattern(50, 1))) + peer.framer.frame(segment(untagged{.sequence = 2}));
  peer.feed(const_bytes{second}.first(second.size() - 3));
  EXPECT_TRUE(peer.side.engine.held());
  peer.pass(1h);
  EXPECT_FALSE(peer.side.engine.ended());
  region& into = peer.side.user.add(64);
  peer.side.user.post_receive(into);
  peer.side.engine.receive_posted(peer.side.now);
  peer.pass(29s);
  EXPECT_FALSE(peer.side.engine.ended());
  peer.pass(1s);
  EXPECT_EQ(peer.side.engine.error(), mpa::errc::fpdu_timeout);  // now it is the peer's turn
}

// Random mutations with the CRC repaired: whatever happens, each request and receive completes once, guards hold, the
// end is reached and told once (field fault B152, SEC-24, SEC-25).
TEST(Mutations, WithTheCrcRepaired) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    test_support::random_source random(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    scripted_peer peer({.initiator = random.chance(50)});
    const conversation talk(peer);
    peer.open();
    region& own = peer.side.user.add(64);
    peer.side.read(own.element(0, 64), {stag{1}, 0});
    peer.side.send(own.element(0, 64));
    if (random.chance(50)) peer.take();
    for (int i = 0; i < 12 && !peer.side.engine.ended(); ++i) {
      octets unit = conversation::ulpdus()[random.below(6)];
      if (random.chance(10)) unit = segment(tagged{.op = 2, .stag = own.key.value, .offset = own.base}, pattern(64, 1));
      for (std::uint64_t changes = random.between(0, 3); changes != 0; --changes) {
        if (random.chance(10)) unit.resize(random.below(unit.size() + 20));
        if (unit.empty()) break;
        unit[random.below(std::min<std::size_t>(unit.size(), 46))] ^= static_cast<std::byte>(1u << random.below(8));
      }
      peer.send(unit);
      if (random.chance(50)) peer.drain();
    }
    random.chance(50) ? peer.eof() : peer.lose();
    peer.drain();
    peer.pass(60s);
    peer.side.poll();
    ASSERT_EQ(peer.side.engine.state(), stream_state::closed);
    ASSERT_TRUE(peer.side.told(stream_event::disconnected));
    ASSERT_EQ(peer.side.outstanding(), 0u);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace iwarp::stream_test
