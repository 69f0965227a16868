// Every rule that can be seen from outside, broken once: iwarp-dump says which, where, and goes on behind it.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "rdmap/terminate.hpp"
#include "tests/dump/collected.hpp"
#include "tests/dump/synthetic.hpp"

namespace iwarp::dump_test {
namespace {

using rdmap::opcode;

/// A connection in which something is broken, and the rules that it breaks.
struct broken {
  const char* name;
  std::function<std::vector<frame>()> make;
  std::string rules;
};
void PrintTo(const broken& b, std::ostream* out) { *out << b.name; }

std::vector<frame> ended(talk& t) {
  t.tcp.close();
  return t.tcp.frames;
}

/// The ULPDUs from the client in turn, then a Send of the server and the end.
std::function<std::vector<frame>()> from_client(std::vector<octets> ulpdus, startup s = {}) {
  return [ulpdus, s] {
    talk t(s, s);
    for (const octets& u : ulpdus) t.say(side::client, u);
    t.say(side::server, send(1, counted(5)));
    return ended(t);
  };
}

octets with(octets data, std::size_t at, unsigned value) {
  data[at] = static_cast<std::byte>(value);
  return data;
}

std::function<std::vector<frame>()> startups(octets asked, octets answered) {
  return [asked, answered] {
    tcp_talk tcp;
    tcp.open();
    tcp.say(side::client, asked);
    tcp.say(side::server, answered);
    tcp.close();
    return tcp.frames;
  };
}

startup enhanced(mpa::enhanced_data e) {
  startup s;
  s.enhanced = e;
  return s;
}

const rdmap::read_request some_read{.sink = {9}, .sink_offset = 0x100, .size = 20, .source = {3}, .source_offset = 1};

std::vector<broken> all() {
  std::vector<broken> b;
  const auto add = [&](const char* name, std::function<std::vector<frame>()> make, std::string rules) {
    b.push_back({name, std::move(make), std::move(rules)});
  };
  // MPA start-up ------------------------------------------------------------------------------------------------
  add("RInRequest", startups(with(request(), 16, 0x70), reply()), "MPA-52");
  add("ReservedFlags", startups(with(request(), 16, 0x54), reply()), "MPA-54");
  add("Revision3", startups(with(request(), 17, 3), reply()), "MPA-55");
  add("Revision0", startups(with(request({.revision = 1}), 17, 0), reply({.revision = 1})), "MPA-55 MPA-55");
  add("PrivateDataTooLong", startups(with(with(request() + counted(596), 18, 2), 19, 88), reply()), "MPA-57");
  add("RevisionOneWithS", startups(with(request({.revision = 1}), 16, 0x50), reply({.revision = 1})), "MPA-82");
  add("EnhancedCutShort", startups(with(with(request({.revision = 1}), 16, 0x50), 17, 2), reply({.revision = 1})),
      "MPA-84");
  add("UnenhancedReply", startups(request(), reply({.revision = 1})), "MPA-86");
  add("EnhancedReplyToUnenhanced", startups(request({.revision = 1}), reply()), "MPA-87 MPA-55");
  add("OrdAboveIrd", startups(request(enhanced({.ird = 4, .ord = 4})), reply(enhanced({.ird = 4, .ord = 5}))),
      "MPA-90");
  add("IrdThoughUnsaid", startups(request(enhanced({.ird = 4, .ord = 0x3FFF})), reply(enhanced({.ird = 4, .ord = 4}))),
      "MPA-95");
  add("OrdThoughUnsaid", startups(request(enhanced({.ird = 0x3FFF, .ord = 4})), reply(enhanced({.ird = 4, .ord = 4}))),
      "MPA-96");
  add("PeerToPeerWithoutRtr",
      startups(request(enhanced({.peer_to_peer = true, .ird = 1, .ord = 1})),
               reply(enhanced({.peer_to_peer = true, .rtr = {.write = true}, .ird = 1, .ord = 1}))),
      "MPA-99");
  add("PeerToPeerNotEchoed",
      startups(request(enhanced({.peer_to_peer = true, .rtr = {.write = true}, .ird = 1, .ord = 1})),
               reply(enhanced({.ird = 1, .ord = 1}))),
      "MPA-100");
  add("ReplyWithoutRtr",
      startups(request(enhanced({.peer_to_peer = true, .rtr = {.write = true}, .ird = 1, .ord = 1})),
               reply(enhanced({.peer_to_peer = true, .ird = 1, .ord = 1}))),
      "MPA-101");
  add("RtrWithoutPeerToPeer",
      startups(request(enhanced({.rtr = {.read = true}, .ird = 1, .ord = 1})), reply(enhanced({.ird = 1, .ord = 1}))),
      "MPA-103");
  add("BothInitiators", startups(request(), request()), "MPA-69");
  add(
      "OctetsBehindTheRequest",
      [] {
        tcp_talk tcp;
        tcp.open();
        fpdu_stream client;
        tcp.say(side::client, request());
        tcp.say(side::client, client(send(1, counted(10))));
        tcp.say(side::server, reply());
        tcp.close();
        return tcp.frames;
      },
      "MPA-67");
  add(
      "StartupCutShort",
      [] {
        tcp_talk tcp;
        tcp.open();
        tcp.say(side::client, request());
        octets half = reply();
        half.resize(18);
        tcp.say(side::server, half);
        tcp.close();
        return tcp.frames;
      },
      "MPA-58");
  add(
      "ResponderFirst",
      [] {
        tcp_talk tcp;
        tcp.open();
        fpdu_stream server;
        tcp.say(side::client, request());
        octets both = reply();
        both = both + server(send(1, counted(10)));
        tcp.segment(side::server, both);
        tcp.close();
        return tcp.frames;
      },
      "MPA-68");
  {
    const startup p2p = enhanced({.peer_to_peer = true, .rtr = {.write = true}, .ird = 1, .ord = 1});
    add("NoRtr", from_client({send(1, counted(3))}, p2p), "MPA-104");
    add("RtrOfAnotherKind", from_client({send(1, {})}, p2p), "MPA-104");
    add("RtrWithPayload", from_client({write(1, 1, counted(1))}, p2p), "MPA-104");
  }
  // MPA framing -------------------------------------------------------------------------------------------------
  add(
      "CrcWrong",
      [] {
        talk t;
        t.say(side::client, send(1, counted(100)));
        octets bad = t.client(send(2, counted(100)));
        bad[50] ^= std::byte{1};
        t.tcp.say(side::client, bad);
        t.say(side::client, send(3, counted(100)));
        return ended(t);
      },
      "MPA-36");
  add(
      "PadNotZero",
      [] {
        talk t({.crc = false}, {.crc = false});
        octets fpdu = t.client(send(1, counted(1)));
        fpdu[2 + 18 + 1] = std::byte{7};
        t.tcp.say(side::client, fpdu);
        return ended(t);
      },
      "MPA-11");
  add(
      "UlpduTooLong",
      [] {
        talk t;
        t.say(side::client, send(1, counted(64769 - 18)));
        t.say(side::client, send(2, counted(64768 - 18)));
        return ended(t);
      },
      "MPA-04");
  add("EmptyUlpdu", from_client({send(1, counted(3)), {}}), "MPA-06");
  for (const bool reserved : {true, false}) {
    add(
        reserved ? "MarkerReserved" : "MarkerPointer",
        [reserved] {
          startup s{.markers = true, .crc = false};
          talk t(s, s);
          octets fpdu = t.client(send(1, counted(900)));
          fpdu[reserved ? 513 : 515] ^= std::byte{0x10};
          t.tcp.say(side::client, fpdu);
          t.say(side::client, send(2, counted(900)));
          return ended(t);
        },
        reserved ? "MPA-15" : "MPA-20");
  }
  add(
      "MarkerLowBits",
      [] {
        startup s{.markers = true, .crc = false};
        talk t(s, s);
        octets fpdu = t.client(send(1, counted(900)));
        fpdu[515] |= std::byte{1};
        t.tcp.say(side::client, fpdu);
        return ended(t);
      },
      "MPA-16");
  add(
      "FirstMarkerNotZero",
      [] {
        startup s{.markers = true, .crc = false};
        talk t(s, s);
        octets fpdu = t.client(send(1, counted(9)));
        fpdu[3] = std::byte{4};
        t.tcp.say(side::client, fpdu);
        return ended(t);
      },
      "MPA-21");
  add(
      "MarkerBetweenFpdusPointsBack",
      [] {
        startup s{.markers = true, .crc = false};
        talk t(s, s);
        t.say(side::client, send(1, counted(502 - 18)));
        octets fpdu = t.client(send(2, counted(2)));
        fpdu[2] = std::byte{2};
        t.tcp.say(side::client, fpdu);
        return ended(t);
      },
      "MPA-24");
  add(
      "NoMarkersThoughAskedFor",
      [] {
        tcp_talk tcp;
        tcp.open();
        fpdu_stream client;
        tcp.say(side::client, request());
        tcp.say(side::server, reply({.markers = true}));
        for (std::uint32_t i = 1; i <= 4; ++i) tcp.say(side::client, client(send(i, counted(900))));
        tcp.close();
        return tcp.frames;
      },
      "MPA-17");
  add(
      "MarkersThoughNotAskedFor",
      [] {
        tcp_talk tcp;
        tcp.open();
        fpdu_stream client(true, true);
        tcp.say(side::client, request());
        tcp.say(side::server, reply());
        for (std::uint32_t i = 1; i <= 4; ++i) tcp.say(side::client, client(send(i, counted(900))));
        tcp.close();
        return tcp.frames;
      },
      "MPA-18");
  add(
      "FramingLost",
      [] {
        talk t;
        t.say(side::client, send(1, counted(100)));
        octets bad = t.client(send(2, counted(100)));
        bad[1] ^= std::byte{0x40};
        t.tcp.say(side::client, bad);
        t.say(side::client, send(3, counted(100)));
        t.say(side::client, send(4, counted(100)));
        return ended(t);
      },
      "MPA-36 CAPTURE");
  // DDP ---------------------------------------------------------------------------------------------------------
  add("ReservedBitsOfDdp", from_client({with(send(1, counted(3)), 0, 0x45)}), "DDP-01");
  add("LastMissing", from_client({send(1, counted(3), 0, false), send(2, counted(3))}), "DDP-03");
  add("EndInsideAMessage", from_client({send(1, counted(3), 0, false)}), "DDP-03");
  add("DdpVersion", from_client({with(send(1, counted(3)), 0, 0x42)}), "DDP-04");
  add("TwoStags", from_client({write(1, 0, counted(4), false), write(2, 4, counted(4))}), "DDP-06");
  add("TaggedOffsetGap", from_client({write(1, 0, counted(4), false), write(1, 8, counted(4))}), "DDP-07");
  add("TwoOpcodes", from_client({send(1, counted(4), 0, false), untagged(opcode::send_solicited, 0, 1, counted(4), 4)}),
      "DDP-09");
  add("MsnSkipped", from_client({send(1, counted(4)), send(3, counted(4)), send(4, counted(4))}), "DDP-10");
  add("MsnNotOneFirst", from_client({send(0, counted(4))}), "DDP-10");
  add("MsnTwice", from_client({send(1, counted(4)), send(1, counted(4))}), "DDP-10");
  add("MessageOffsetGap", from_client({send(1, counted(4), 0, false), send(1, counted(4), 5)}), "DDP-12");
  add("MessageOffsetFirst", from_client({send(1, counted(4), 4)}), "DDP-12");
  add("EmptySegmentNotLast", from_client({write(1, 1, {}, false), write(1, 1, counted(4))}), "DDP-17");
  add("UnknownQueue", from_client({untagged(opcode::send, 4, 1, counted(4))}), "DDP-26");
  add("TaggedOffsetWraps", from_client({write(1, ~std::uint64_t{0} - 2, counted(4))}), "DDP-34");
  // RDMAP -------------------------------------------------------------------------------------------------------
  add("ReservedBitsOfRdmap", from_client({with(send(1, counted(3)), 1, 0x53)}), "RDMAP-01");
  add("RdmapVersion", from_client({with(send(1, counted(3)), 1, 0x83)}), "RDMAP-03");
  add("OpcodeUnassigned", from_client({with(send(1, counted(3)), 1, 0x4C)}), "RDMAP-04");
  add("SendTagged", from_client({with(write(1, 1, counted(3)), 1, 0x43)}), "RDMAP-05");
  add("SendOnQueueOne", from_client({untagged(opcode::send, 1, 1, counted(3))}), "RDMAP-05");
  add("InvalidateStagInSend", from_client({untagged(opcode::send, 0, 1, counted(3), 0, true, 7)}), "RDMAP-07");
  add("ReadRequestTooLong", from_client({read_request(1, some_read) + counted(1)}), "RDMAP-15 RDMAP-19");
  add("ReadRequestCut", from_client({untagged(opcode::read_request, 1, 1, counted(20))}), "RDMAP-15");
  add("UlpduShorterThanItsHeader", from_client({octets{std::byte{0x41}, std::byte{0x43}, {}, {}}}), "RDMAP-70");
  const auto answered = [](octets response) {
    return [response] {
      talk t;
      t.say(side::client, read_request(1, some_read));
      t.say(side::server, response);
      return ended(t);
    };
  };
  add("ResponseToAnotherStag", answered(read_response(8, 0x100, counted(20))), "RDMAP-18");
  add("ResponseToAnotherOffset", answered(read_response(9, 0x101, counted(20))), "RDMAP-18");
  add("ResponseTooShort", answered(read_response(9, 0x100, counted(19))), "RDMAP-19");
  add("ResponseTooLong", answered(read_response(9, 0x100, counted(21))), "RDMAP-19");
  add("ResponseMissing", answered(send(1, counted(3))), "RDMAP-19");
  add("ResponseUnasked", from_client({read_response(9, 0x100, counted(20))}), "RDMAP-29");
  add(
      "ResponsesOutOfOrder",
      [] {
        talk t;
        rdmap::read_request second = some_read;
        second.sink = {10};
        t.say(side::client, read_request(1, some_read));
        t.say(side::client, read_request(2, second));
        t.say(side::server, read_response(10, 0x100, counted(20)));
        t.say(side::server, read_response(9, 0x100, counted(20)));
        return ended(t);
      },
      "RDMAP-25");
  add(
      "MoreReadsThanAgreed",
      [] {
        const startup two = enhanced({.ird = 2, .ord = 2});
        talk t(two, two);
        for (std::uint32_t i = 1; i <= 3; ++i) t.say(side::client, read_request(i, some_read));
        for (std::uint32_t i = 1; i <= 3; ++i) t.say(side::server, read_response(9, 0x100, counted(20)));
        return ended(t);
      },
      "RDMAP-24");
  add("WriteBehindItsInvalidation",
      from_client({untagged(opcode::send_invalidate, 0, 1, counted(3), 0, true, 0x1234), write(0x1234, 1, counted(3))}),
      "RDMAP-38");
  add(
      "ReadBehindItsInvalidation",
      [] {
        talk t;
        t.say(side::client, untagged(opcode::send_solicited_invalidate, 0, 1, {}, 0, true, 3));
        t.say(side::client, read_request(1, some_read));
        t.say(side::server, read_response(9, 0x100, counted(20)));
        return ended(t);
      },
      "RDMAP-38");
  add("StagZeroInvalidated", from_client({untagged(opcode::send_invalidate, 0, 1, {}, 0, true, 0)}), "RDMAP-37");
  add("TerminateReserved", from_client({terminate(from_hex("20021000"))}), "RDMAP-40");
  add("TerminateTooShort", from_client({terminate(from_hex("2002"))}), "RDMAP-40");
  add("BehindATerminate", from_client({terminate(from_hex("20020000")), send(1, counted(3))}), "RDMAP-43");
  add("TerminateWithoutItsHeader", from_client({terminate(from_hex("1202c000 001c"))}), "RDMAP-45");
  add("TerminateLengthWithoutHeader", from_client({terminate(from_hex("12028000"))}), "RDMAP-45");
  add("TerminateRdmaHeaderOfASend",
      from_client({terminate(from_hex("0100e000 001c 4143 00000000 00000000 00000009 00000000") + counted(28))}),
      "RDMAP-46");
  add("TerminateCatastrophicWithHeader",
      from_client({terminate(from_hex("0000c000 001c 4143 00000000 00000000 00000009 00000000"))}), "RDMAP-48");
  add(
      "TerminateAnswered",
      [] {
        talk t;
        t.say(side::client, terminate(from_hex("20020000")));
        t.say(side::server, terminate(from_hex("20020000")));
        return ended(t);
      },
      "RDMAP-69");
  // RFC 7306 ----------------------------------------------------------------------------------------------------
  const rdmap::atomic_request some_add{.identifier = 7, .remote = {5}, .data = 1};
  const auto atomic = [](octets asked, octets given) {
    return [asked, given] {
      talk t;
      t.say(side::client, asked);
      t.say(side::server, given);
      return ended(t);
    };
  };
  const octets asked = atomic_request(1, some_add);
  const octets given = atomic_response(1, {.identifier = 7, .value = 1});
  add("ImmediateWithStag", from_client({untagged(opcode::immediate, 0, 1, counted(8), 0, true, 1)}), "EXT-01");
  add("ImmediateOfNineOctets", from_client({untagged(opcode::immediate, 0, 1, counted(9))}), "EXT-02");
  add("AtomicRequestTooShort", from_client({untagged(opcode::atomic_request, 1, 1, counted(51))}), "EXT-08");
  add("AtomicOpcodeUnassigned", atomic(with(asked, 18 + 3, 1), given), "EXT-11");
  add("AtomicUnanswered", from_client({asked}), "EXT-13");
  add("AtomicResponseTooLong", atomic(asked, given + counted(1)), "EXT-14");
  add("AtomicResponseOfAnother", atomic(asked, atomic_response(1, {.identifier = 8, .value = 1})), "EXT-17");
  add("AtomicResponseUnasked", from_client({given}), "EXT-17");
  add(
      "ReadResponseBeforeTheAtomics",
      [asked, given] {
        talk t;
        t.say(side::client, asked);
        t.say(side::client, read_request(2, some_read));
        t.say(side::server, read_response(9, 0x100, counted(20)));
        t.say(side::server, given);
        return ended(t);
      },
      "RDMAP-25");
  add(
      "AtomicResponseBeforeTheReads",
      [given, some_add] {
        talk t;
        t.say(side::client, read_request(1, some_read));
        t.say(side::client, atomic_request(2, some_add));
        t.say(side::server, given);
        t.say(side::server, read_response(9, 0x100, counted(20)));
        return ended(t);
      },
      "EXT-18");
  add("AtomicReserved", atomic(with(asked, 18, 1), given), "EXT-28");
  {
    rdmap::atomic_request compared = some_add;
    compared.compare = 1;
    add("FetchAddWithCompare", atomic(atomic_request(1, compared), given), "EXT-28");
  }
  return b;
}

class Checks : public testing::TestWithParam<broken> {};

TEST_P(Checks, SaysTheRule) {
  const collected got = analyse(GetParam().make());
  EXPECT_EQ(got.rules(), GetParam().rules) << (got.problems.empty() ? "" : got.problems[0].text);
  for (const auto& p : got.problems) {
    EXPECT_GT(p.at.frame.number, 3u) << "behind the start of TCP";
    EXPECT_FALSE(p.text.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Checks, testing::ValuesIn(all()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Checks, TheProblemIsWhereTheOctetsAre) {
  talk t;
  t.say(side::client, send(1, counted(100)));
  t.say(side::client, send(7, counted(100)));
  const collected got = analyse(t.tcp.frames);
  ASSERT_EQ(got.problems.size(), 1u);
  EXPECT_EQ(got.problems[0].at.frame.number, 7u);
  EXPECT_EQ(got.problems[0].at.offset, 24u + 124u);  // the Request, then an FPDU of 124 octets
  EXPECT_EQ(got.problems[0].at.from, side::client);
}

// siw's listeners send when they like. With the Reply through, that harms nobody (protocol notes to MPA-68).
TEST(Checks, AResponderThatIsFirstBehindAnAcknowledgedReplyIsNoted) {
  tcp_talk tcp;
  tcp.open();
  fpdu_stream server;
  tcp.say(side::client, request());
  tcp.say(side::server, reply());
  tcp.acknowledge(side::client);
  tcp.say(side::server, server(send(1, counted(10))));
  tcp.close();
  const collected got = analyse(tcp.frames);
  EXPECT_EQ(got.rules(), "");
  EXPECT_EQ(got.notes, std::vector<std::string>{"MPA-68"});
}

TEST(Checks, BothReadingsOfSiwsTerminate) {
  talk t;
  t.say(side::client, terminate(from_hex("21030300 001c4143 00000000 00000000 00000009 00000000")));
  const collected got = analyse(t.tcp.frames);
  ASSERT_EQ(got.messages.size(), 1u);
  const auto& m = std::get<dump::terminate_detail>(got.messages[0].detail).terminate;
  EXPECT_EQ(m.code, (rdmap::term_code{2, 1, 3}));
  EXPECT_EQ(m.swapped_reading, (rdmap::term_code{1, 2, 3}));
}

}  // namespace
}  // namespace iwarp::dump_test
