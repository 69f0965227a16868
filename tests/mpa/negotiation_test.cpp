#include "mpa/negotiation.hpp"

#include "mpa/error.hpp"
#include "tests/mpa/streams.hpp"

#include <gtest/gtest.h>

namespace iwarp::mpa {
namespace {

using test::counting;
using test::from_hex;
using test::octets;
using test::to_hex;

startup_options options() { return {}; }

startup_options depths(std::uint16_t ird, std::uint16_t ord, std::uint16_t max_ird = 128) {
  startup_options o;
  o.ird = ird;
  o.ord = ord;
  o.max_ird = max_ird;
  return o;
}

startup_options peer_to_peer(rtr_set rtr) {
  startup_options o;
  o.peer_to_peer = true;
  o.rtr = rtr;
  return o;
}

octets data_of(const startup_frame& f) { return {f.private_data().begin(), f.private_data().end()}; }

octets emitted(const startup_frame& f) {
  std::array<std::byte, startup_fixed_size + max_private_data> out{};
  const std::size_t n = f.emit(out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Through the wire, as the peer sees it.
startup_frame received(const startup_frame& f) {
  startup_reader reader(f.header.kind);
  const octets wire = emitted(f);
  EXPECT_EQ(reader.consume(wire), wire.size());
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.frame().header, f.header) << "the frame reads as what its maker said";
  return reader.frame();
}

struct outcome {
  negotiated initiator;
  negotiated responder;
  startup_frame reply;
  result<> applied;
};

outcome exchange(const startup_options& initiator, const startup_options& responder) {
  outcome out;
  const startup_frame request = received(make_request(initiator, {}));
  EXPECT_TRUE(check_request(responder, request));
  const accepted a = accept_request(responder, request, {});
  out.responder = a.agreed;
  out.reply = received(a.reply);
  out.applied = apply_reply(initiator, out.reply, out.initiator);
  return out;
}

startup_frame enhanced_frame(frame_kind kind, enhanced_data data) {
  startup_frame f;
  f.header.kind = kind;
  f.header.revision = 2;
  f.header.enhanced = true;
  f.header.private_data_length = enhanced_data_size;
  f.enhanced = data;
  return f;
}

// The Request ---------------------------------------------------------------------------------------------------------

// MPA-30 MPA-48 MPA-82 MPA-99
TEST(MakeRequest, ByDefaultIsEnhancedWithCrcAndWithoutPeerToPeer) {
  EXPECT_EQ(to_hex(emitted(make_request(options(), {}))),
            to_hex(from_hex("4d504120 49442052 65712046 72616d65 50020004 00100010")));
}

TEST(MakeRequest, OfSiwsDefaults) {
  startup_options o;
  o.crc = false;
  EXPECT_EQ(to_hex(emitted(make_request(o, {}))),
            to_hex(from_hex("4d504120 49442052 65712046 72616d65 10020004 00100010")));
}

// MPA-88
TEST(MakeRequest, Revision1IsUnenhanced) {
  startup_options o = peer_to_peer({true, true, true});
  o.revision = 1;
  EXPECT_EQ(to_hex(emitted(make_request(o, from_hex("abcd")))),
            to_hex(from_hex("4d504120 49442052 65712046 72616d65 40010002 abcd")));
}

// MPA-99
TEST(MakeRequest, PeerToPeerFlagsEveryTypeItCanSend) {
  EXPECT_EQ(to_hex(emitted(make_request(peer_to_peer({false, true, true}), from_hex("50494e47")))),
            to_hex(from_hex("4d504120 49442052 65712046 72616d65 50020008 8010c010 50494e47")));
  for (unsigned bits = 1; bits < 8; ++bits) {
    const rtr_set set{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const startup_frame request = make_request(peer_to_peer(set), {});
    ASSERT_TRUE(request.enhanced);
    EXPECT_TRUE(request.enhanced->peer_to_peer);
    EXPECT_EQ(request.enhanced->rtr, set);
  }
}

// MPA-59 MPA-84
TEST(MakeRequest, CarriesPrivateDataUpToItsLimit) {
  startup_options o;
  EXPECT_EQ(data_of(received(make_request(o, counting(508)))), counting(508));
  o.revision = 1;
  EXPECT_EQ(data_of(received(make_request(o, counting(512)))), counting(512));
}

// Revisions -----------------------------------------------------------------------------------------------------------

// MPA-83 MPA-87
TEST(AcceptRequest, Revision1IsAnsweredByRevision1) {
  startup_options initiator = depths(3, 5);
  initiator.revision = 1;
  const outcome o = exchange(initiator, depths(7, 9));
  ASSERT_TRUE(o.applied);
  EXPECT_EQ(to_hex(emitted(o.reply)), to_hex(from_hex("4d504120 49442052 65702046 72616d65 40010000")));
  for (const negotiated& n : {o.initiator, o.responder}) {
    EXPECT_EQ(n.revision, 1);  // MPA-08
    EXPECT_FALSE(n.enhanced);
    EXPECT_FALSE(n.peer_to_peer);
    EXPECT_EQ(n.rtr, rtr_kind::none);
  }
  EXPECT_EQ(o.initiator.ird, 3);
  EXPECT_EQ(o.initiator.ord, 5);
  EXPECT_EQ(o.responder.ird, 7);
  EXPECT_EQ(o.responder.ord, 9);
}

// MPA-87
TEST(AcceptRequest, UnenhancedRevision2IsAnsweredUnenhancedInRevision2) {
  startup_frame request;
  request.header.revision = 2;
  ASSERT_TRUE(check_request(options(), request));
  const accepted a = accept_request(options(), request, from_hex("01"));
  EXPECT_EQ(to_hex(emitted(a.reply)), to_hex(from_hex("4d504120 49442052 65702046 72616d65 40020001 01")));
  EXPECT_EQ(a.agreed.revision, 2);
  EXPECT_FALSE(a.agreed.enhanced);
}

// MPA-08 MPA-86
TEST(AcceptRequest, EnhancedIsAnsweredEnhanced) {
  const outcome o = exchange(options(), options());
  ASSERT_TRUE(o.applied);
  EXPECT_EQ(to_hex(emitted(o.reply)), to_hex(from_hex("4d504120 49442052 65702046 72616d65 50020004 00100010")));
  EXPECT_TRUE(o.initiator.enhanced && o.responder.enhanced);
  EXPECT_EQ(o.initiator.revision, 2);
  EXPECT_EQ(o.responder.revision, 2);
}

// MPA-89
TEST(CheckRequest, AResponderOfRevision1RefusesAnEnhancedRequestAlone) {
  startup_options responder;
  responder.revision = 1;
  startup_options initiator;
  const auto refused = check_request(responder, make_request(initiator, {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), errc::bad_revision);
  initiator.revision = 1;
  EXPECT_TRUE(check_request(responder, make_request(initiator, {})));
}

TEST(ApplyReply, AnUnenhancedReplyToAnEnhancedRequestIsRefused) {
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    startup_frame reply;
    reply.header.kind = frame_kind::reply;
    reply.header.revision = revision;
    negotiated agreed;
    const auto applied = apply_reply(options(), reply, agreed);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error(), errc::not_enhanced);
  }
}

// MPA-87: and the other way round.
TEST(ApplyReply, AnEnhancedReplyToAnUnenhancedRequestIsRefused) {
  startup_options o;
  o.revision = 1;
  negotiated agreed;
  const auto applied = apply_reply(o, enhanced_frame(frame_kind::reply, {.ird = 1, .ord = 1}), agreed);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error(), errc::bad_revision);
}

// MPA-55
TEST(ApplyReply, AReplyOfAnotherRevisionIsRefused) {
  for (const std::uint8_t revision : {std::uint8_t{0}, std::uint8_t{3}}) {
    startup_frame reply;
    reply.header.kind = frame_kind::reply;
    reply.header.revision = revision;
    negotiated agreed;
    const auto applied = apply_reply(options(), reply, agreed);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error(), errc::bad_revision);
  }
}

// CRC and markers -----------------------------------------------------------------------------------------------------

// MPA-17 MPA-18 MPA-19 MPA-32 MPA-33
TEST(Negotiation, CrcIsOnIfEitherWantsItAndMarkersGoByDirection) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    startup_options i, r;
    i.crc = (bits & 1) != 0;
    r.crc = (bits & 2) != 0;
    i.markers = (bits & 4) != 0;
    r.markers = (bits & 8) != 0;
    i.revision = (bits & 16) != 0 ? 2 : 1;
    const outcome o = exchange(i, r);
    ASSERT_TRUE(o.applied);
    EXPECT_EQ(o.initiator.crc, i.crc || r.crc);
    EXPECT_EQ(o.responder.crc, i.crc || r.crc);
    EXPECT_EQ(o.reply.header.crc, i.crc || r.crc) << "siw goes by the Reply alone";
    EXPECT_EQ(o.initiator.rx_markers, i.markers);
    EXPECT_EQ(o.responder.tx_markers, i.markers);
    EXPECT_EQ(o.responder.rx_markers, r.markers);
    EXPECT_EQ(o.initiator.tx_markers, r.markers);
  }
}

// MPA-33: a Reply with C=0 does not switch off what the Request asked for.
TEST(ApplyReply, CrcStaysOnWhenTheReplyHasCOff) {
  startup_frame reply = enhanced_frame(frame_kind::reply, {});
  reply.header.crc = false;
  negotiated agreed;
  ASSERT_TRUE(apply_reply(options(), reply, agreed));
  EXPECT_TRUE(agreed.crc);
}

// IRD and ORD ---------------------------------------------------------------------------------------------------------

struct depth_case {
  const char* name;
  startup_options initiator, responder;
  std::uint16_t reply_ird, reply_ord;
  std::uint16_t initiator_ird, initiator_ord, responder_ird, responder_ord;
};
void PrintTo(const depth_case& c, std::ostream* out) { *out << c.name; }

class Depths : public testing::TestWithParam<depth_case> {};

// MPA-90 MPA-91 MPA-92 MPA-94
TEST_P(Depths, AreAgreedOn) {
  const depth_case& c = GetParam();
  const outcome o = exchange(c.initiator, c.responder);
  ASSERT_TRUE(o.applied) << o.applied.error().message();
  EXPECT_EQ(o.reply.enhanced->ird, c.reply_ird);
  EXPECT_EQ(o.reply.enhanced->ord, c.reply_ord);
  EXPECT_EQ(o.initiator.ird, c.initiator_ird);
  EXPECT_EQ(o.initiator.ord, c.initiator_ord);
  EXPECT_EQ(o.responder.ird, c.responder_ird);
  EXPECT_EQ(o.responder.ord, c.responder_ord);
  EXPECT_EQ(o.responder.peer_ird, c.initiator.ird);
  EXPECT_EQ(o.responder.peer_ord, c.initiator.ord);
  EXPECT_EQ(o.initiator.peer_ird, c.reply_ird);
  EXPECT_EQ(o.initiator.peer_ord, c.reply_ord);
  EXPECT_LE(o.initiator.ord, o.responder.ird);
  EXPECT_LE(o.responder.ord, o.initiator.ird);
}

INSTANTIATE_TEST_SUITE_P(
    Rfc6581, Depths,
    testing::Values(depth_case{"Equal", depths(16, 16), depths(16, 16), 16, 16, 16, 16, 16, 16},
                    depth_case{"ResponderRaisesIrd", depths(4, 40), depths(16, 16), 40, 4, 4, 40, 40, 4},
                    depth_case{"ResponderOffersLess", depths(4, 400), depths(16, 16), 128, 4, 4, 128, 128, 4},
                    depth_case{"ResponderCannotRaise", depths(4, 400), depths(16, 16, 8), 16, 4, 4, 16, 16, 4},
                    depth_case{"InitiatorWantsLittle", depths(64, 1), depths(16, 16), 16, 16, 64, 1, 16, 16},
                    depth_case{"NoReadsAtAll", depths(0, 0), depths(0, 0), 0, 0, 0, 0, 0, 0},
                    depth_case{"Largest", depths(0x3FFE, 0x3FFE), depths(1, 0x3FFE, 0x3FFE), 0x3FFE, 0x3FFE, 0x3FFE,
                               0x3FFE, 0x3FFE, 0x3FFE}),
    [](const auto& p) { return std::string(p.param.name); });

// MPA-95
TEST(AcceptRequest, OrdNotNegotiatedLeavesIrdAlone) {
  const accepted a =
      accept_request(depths(7, 9), enhanced_frame(frame_kind::request, {.ird = 4, .ord = depth_not_negotiated}), {});
  EXPECT_EQ(a.agreed.ird, 7);
  EXPECT_EQ(a.reply.enhanced->ird, depth_not_negotiated);
  EXPECT_EQ(a.agreed.ord, 4);
  EXPECT_EQ(a.reply.enhanced->ord, 4);
}

// MPA-96
TEST(AcceptRequest, IrdNotNegotiatedLeavesOrdAlone) {
  const accepted a =
      accept_request(depths(7, 9), enhanced_frame(frame_kind::request, {.ird = depth_not_negotiated, .ord = 20}), {});
  EXPECT_EQ(a.agreed.ord, 9);
  EXPECT_EQ(a.reply.enhanced->ord, depth_not_negotiated);
  EXPECT_EQ(a.agreed.ird, 20);
  EXPECT_EQ(a.reply.enhanced->ird, 20);
}

// MPA-97
TEST(ApplyReply, WhatTheReplyDoesNotNegotiateStays) {
  negotiated agreed;
  ASSERT_TRUE(
      apply_reply(depths(7, 9), enhanced_frame(frame_kind::reply, {.ird = depth_not_negotiated, .ord = 3}), agreed));
  EXPECT_EQ(agreed.ord, 9);
  EXPECT_EQ(agreed.ird, 7);
  ASSERT_TRUE(
      apply_reply(depths(7, 9), enhanced_frame(frame_kind::reply, {.ird = 3, .ord = depth_not_negotiated}), agreed));
  EXPECT_EQ(agreed.ord, 3);
  EXPECT_EQ(agreed.ird, 7);
}

// MPA-92 MPA-93 MPA-94 MPA-108
TEST(ApplyReply, RaisesIrdUpToItsLimitAndNoFurther) {
  startup_options own = depths(7, 9, 20);
  own.markers = true;
  startup_frame reply = enhanced_frame(frame_kind::reply, {.ird = 5, .ord = 20});
  reply.header.markers = true;
  negotiated agreed;
  ASSERT_TRUE(apply_reply(own, reply, agreed));
  EXPECT_EQ(agreed.ird, 20);
  reply.enhanced->ord = 21;
  const auto applied = apply_reply(own, reply, agreed);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error(), errc::insufficient_ird);
  // Framing is known all the same, for the Terminate; and the ULP can be told the peer's numbers.
  EXPECT_TRUE(agreed.crc && agreed.rx_markers && agreed.tx_markers && agreed.enhanced);
  EXPECT_EQ(agreed.peer_ird, 5);
  EXPECT_EQ(agreed.peer_ord, 21);
}

TEST(ApplyReply, AnIrdAboveItsRaisingLimitIsNotLowered) {
  negotiated agreed;
  ASSERT_TRUE(apply_reply(depths(64, 9, 8), enhanced_frame(frame_kind::reply, {.ird = 5, .ord = 64}), agreed));
  EXPECT_EQ(agreed.ird, 64);
}

// Peer-to-peer --------------------------------------------------------------------------------------------------------

rtr_set set_of(unsigned bits) { return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}; }

// MPA-100 MPA-101 MPA-102 MPA-104 MPA-106: every pair of sets.
TEST(PeerToPeer, TheRtrIsOneThatBothKnow) {
  for (unsigned can_send = 1; can_send < 8; ++can_send) {
    for (unsigned can_take = 1; can_take < 8; ++can_take) {
      SCOPED_TRACE(testing::Message() << can_send << " to " << can_take);
      startup_options responder;
      responder.rtr = set_of(can_take);
      const outcome o = exchange(peer_to_peer(set_of(can_send)), responder);
      const unsigned both = can_send & can_take;
      ASSERT_TRUE(o.reply.enhanced->peer_to_peer);
      ASSERT_EQ(o.reply.enhanced->rtr, set_of(both != 0 ? both : can_take));
      ASSERT_EQ(o.responder.rtr_accepted, o.reply.enhanced->rtr);
      ASSERT_TRUE(o.responder.peer_to_peer);
      ASSERT_TRUE(o.initiator.peer_to_peer);
      if (both == 0) {
        ASSERT_FALSE(o.applied);
        ASSERT_EQ(o.applied.error(), errc::no_matching_rtr);
        ASSERT_TRUE(o.initiator.crc) << "the Terminate can be framed";
      } else {
        ASSERT_TRUE(o.applied);
        const rtr_kind want = (both & 2) != 0 ? rtr_kind::write : (both & 4) != 0 ? rtr_kind::read : rtr_kind::send;
        ASSERT_EQ(o.initiator.rtr, want);
      }
    }
  }
}

// MPA-100 MPA-103
TEST(PeerToPeer, WithoutAAllFlagsAreZeroAndIgnored) {
  const outcome o = exchange(options(), options());
  EXPECT_FALSE(o.reply.enhanced->peer_to_peer);
  EXPECT_FALSE(o.reply.enhanced->rtr.any());
  EXPECT_EQ(o.initiator.rtr, rtr_kind::none);

  const accepted a = accept_request(
      options(), enhanced_frame(frame_kind::request, {.rtr = {true, true, true}, .ird = 1, .ord = 1}), {});
  EXPECT_FALSE(a.reply.enhanced->peer_to_peer);
  EXPECT_FALSE(a.reply.enhanced->rtr.any());
  EXPECT_FALSE(a.agreed.peer_to_peer);

  negotiated agreed;
  ASSERT_TRUE(apply_reply(peer_to_peer({true, true, true}),
                          enhanced_frame(frame_kind::reply, {.rtr = {true, true, true}}), agreed));
  EXPECT_FALSE(agreed.peer_to_peer);
  EXPECT_EQ(agreed.rtr, rtr_kind::none);
  ASSERT_TRUE(apply_reply(
      options(), enhanced_frame(frame_kind::reply, {.peer_to_peer = true, .rtr = {true, true, true}}), agreed));
  EXPECT_FALSE(agreed.peer_to_peer) << "nobody asked for it";
}

// MPA-98
TEST(PeerToPeer, AReadAsRtrRaisesAnIrdOf0To1) {
  startup_options responder = depths(0, 0);
  startup_options initiator = peer_to_peer({false, false, true});
  initiator.ird = initiator.ord = 0;
  const outcome o = exchange(initiator, responder);
  ASSERT_TRUE(o.applied);
  EXPECT_EQ(o.reply.enhanced->ird, 1);
  EXPECT_EQ(o.responder.ird, 1);
  EXPECT_EQ(o.initiator.rtr, rtr_kind::read);
  responder.rtr = {false, true, false};
  initiator.rtr = {true, true, true};
  EXPECT_EQ(exchange(initiator, responder).responder.ird, 0) << "another RTR needs none";
}

// Rejecting -----------------------------------------------------------------------------------------------------------

// MPA-53 MPA-86 MPA-94
TEST(RejectRequest, StatesWhatWouldHaveBeenNeeded) {
  const startup_frame request = make_request(peer_to_peer({false, true, true}), {});
  const startup_frame reply = received(reject_request(depths(7, 99), request, from_hex("4e4f")));
  EXPECT_TRUE(reply.header.rejected);
  EXPECT_EQ(reply.header.revision, 2);
  ASSERT_TRUE(reply.enhanced);
  EXPECT_EQ(reply.enhanced->ird, 7);
  EXPECT_EQ(reply.enhanced->ord, 99) << "not lowered to the initiator's IRD";
  EXPECT_TRUE(reply.enhanced->peer_to_peer);
  EXPECT_TRUE(reply.enhanced->rtr.any());
  EXPECT_EQ(data_of(reply), from_hex("4e4f"));
}

// MPA-53 MPA-87
TEST(RejectRequest, OfRevision1IsUnenhanced) {
  startup_options initiator;
  initiator.revision = 1;
  EXPECT_EQ(to_hex(emitted(reject_request(options(), make_request(initiator, {}), {}))),
            to_hex(from_hex("4d504120 49442052 65702046 72616d65 60010000")));
}

// MPA-95 MPA-96
TEST(RejectRequest, AnswersNotNegotiatedAlike) {
  const startup_frame reply = reject_request(
      options(), enhanced_frame(frame_kind::request, {.ird = depth_not_negotiated, .ord = depth_not_negotiated}), {});
  EXPECT_EQ(reply.enhanced->ird, depth_not_negotiated);
  EXPECT_EQ(reply.enhanced->ord, depth_not_negotiated);
}

// MPA-53
TEST(AcceptRequest, NeverCarriesR) {
  EXPECT_FALSE(accept_request(options(), make_request(options(), {}), {}).reply.header.rejected);
}

// MPA-59
TEST(AcceptRequest, CarriesPrivateDataUpToItsLimit) {
  const startup_frame request = make_request(options(), {});
  EXPECT_EQ(data_of(received(accept_request(options(), request, counting(508)).reply)), counting(508));
}

}  // namespace
}  // namespace iwarp::mpa
