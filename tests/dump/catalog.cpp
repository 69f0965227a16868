#include "tests/dump/catalog.hpp"

#include <algorithm>

namespace iwarp::dump_test {
namespace {

using rdmap::opcode;

constexpr startup plain{.crc = false};
constexpr startup with_markers{.markers = true};

/// Sends and Writes of `size` octets each way in turn, `rounds` times.
void chat(talk& t, int rounds, std::size_t size) {
  for (int i = 1; i <= rounds; ++i) {
    const auto n = static_cast<std::uint32_t>(i);
    t.say(side::client, send(n, counted(size, n)));
    t.say(side::server, write(0x11223300 + n, 0x1000 * n, counted(size, 7 * n)));
  }
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i != times; ++i) out += (out.empty() ? "" : " ") + text;
  return out;
}

entry finished(std::string name, talk& t, std::string operations, std::uint64_t fpdus) {
  t.tcp.close();
  return {.name = std::move(name), .frames = t.tcp.frames, .operations = std::move(operations), .fpdus = fpdus};
}

/// A connection of 12 Sends each of 400 octets, without its beginning.
entry mid_stream(const std::string& name, startup asked, startup answered, std::size_t size, std::size_t drop) {
  talk t(asked, answered);
  chat(t, 6, size);
  t.tcp.close();
  const auto first = t.tcp.frames.begin() + static_cast<std::ptrdiff_t>(5 + drop);
  entry e{.name = name, .frames = {first, t.tcp.frames.end()}};
  e.operations = repeat("Send Write", 6 - static_cast<int>(drop) / 2);
  e.fpdus = 12 - drop;
  return e;
}

}  // namespace

std::vector<entry> catalog() {
  std::vector<entry> all;
  {
    startup asked;
    asked.enhanced = mpa::enhanced_data{.peer_to_peer = true, .rtr = {true, true, true}, .ird = 4, .ord = 2};
    asked.private_data = counted(40);
    startup answered;
    answered.enhanced = mpa::enhanced_data{.peer_to_peer = true, .rtr = {.write = true}, .ird = 2, .ord = 4};
    talk t(asked, answered);
    t.say(side::client, write(0, 0, {}));
    chat(t, 2, 100);
    all.push_back(finished("revision-2", t, "Write Send Write Send Write", 5));
  }
  {
    startup old{.revision = 1};
    talk t(old, old);
    chat(t, 2, 100);
    all.push_back(finished("revision-1", t, repeat("Send Write", 2), 4));
  }
  {
    startup no = plain;
    no.rejected = true;
    talk t(plain, no);
    all.push_back(finished("rejected", t, "", 0));
  }
  {
    talk t(with_markers, {});
    chat(t, 6, 700);
    all.push_back(finished("markers-from-responder", t, repeat("Send Write", 6), 12));
  }
  {
    talk t({}, with_markers);
    chat(t, 6, 700);
    all.push_back(finished("markers-from-initiator", t, repeat("Send Write", 6), 12));
  }
  {
    talk t(with_markers, with_markers);
    chat(t, 6, 1390);
    all.push_back(finished("markers-both-ways", t, repeat("Send Write", 6), 12));
  }
  {
    // Markers and several FPDUs in a segment, with and without CRC.
    for (const bool crc : {true, false}) {
      startup s = with_markers;
      s.crc = crc;
      talk t(s, s);
      const auto together = [&](fpdu_stream& from, const std::vector<octets>& ulpdus) {
        octets out;
        for (const octets& u : ulpdus) out = out + from(u);
        return out;
      };
      t.tcp.segment(side::client, together(t.client, {send(1, counted(500)), send(2, counted(300))}));
      t.tcp.segment(side::server,
                    together(t.server, {send(1, counted(90)), write(1, 2, counted(400)), send(2, counted(222))}));
      all.push_back(finished(crc ? "two-fpdus-with-markers" : "two-fpdus-with-markers-no-crc", t,
                             "Send Send Send Write Send", 5));
    }
  }
  {
    // RFC 5044 s4.4 case 2: a marker exactly between two FPDUs counts to the second, and to its CRC.
    talk t({}, with_markers);
    t.say(side::client, send(1, counted(502 - 18)));
    t.say(side::client, send(2, counted(2)));
    all.push_back(finished("marker-between-fpdus", t, "Send Send", 2));
  }
  {
    talk t({}, {}, {.segment = 1});
    chat(t, 2, 30);
    all.push_back(finished("one-octet-segments", t, repeat("Send Write", 2), 4));
  }
  {
    tcp_options cut{.segment = 7};
    talk t({}, {}, cut);
    chat(t, 2, 60);
    all.push_back(finished("split-startup", t, repeat("Send Write", 2), 4));
  }
  {
    talk t({}, {}, {.server_port = 4420});
    chat(t, 3, 200);
    all.push_back(finished("port-4420", t, repeat("Send Write", 3), 6));
  }
  {
    talk t;
    t.say(side::client, send(1, {}));
    t.say(side::server, write(0, 0, {}));
    t.say(side::client, read_request(1, {}));
    t.say(side::server, read_response(0, 0, {}));
    t.say(side::client, send(2, counted(1)));
    all.push_back(finished("zero-length-messages", t, "Send Write ReadReq ReadResp Send", 5));
  }
  {
    // RFC 6581 words the Send RTR as a "zero-length FULPDU": an FPDU without any ULPDU.
    startup asked;
    asked.enhanced = mpa::enhanced_data{.peer_to_peer = true, .rtr = {.send = true}, .ird = 1, .ord = 1};
    talk t(asked, asked);
    t.say(side::client, {});
    t.say(side::server, send(1, counted(20)));
    t.say(side::client, send(1, counted(20)));
    all.push_back(finished("zero-length-fpdu", t, "Send Send", 3));
  }
  for (const bool crc : {true, false}) {
    const std::string tail = crc ? "" : "-no-crc";
    const startup s{.crc = crc};
    startup m = s;
    m.markers = true;
    all.push_back(mid_stream("mid-stream" + tail, s, s, 400, 0));
    all.push_back(mid_stream("mid-stream-later" + tail, s, s, 900, 4));
    all.push_back(mid_stream("mid-stream-markers" + tail, m, m, 900, 4));
    all.push_back(mid_stream("mid-stream-markers-short" + tail, m, m, 52, 2));
  }
  {
    // Begins inside an FPDU.
    talk t;
    octets stream;
    for (std::uint32_t i = 1; i <= 3; ++i) stream = stream + t.client(send(i, counted(1000)));
    tcp_talk tcp;
    tcp.lose(side::client, 300);
    tcp.say(side::client, octets(stream.begin() + 300, stream.end()));
    all.push_back({.name = "mid-fpdu",
                   .frames = tcp.frames,
                   .operations = "Send Send",
                   .fpdus = 2,
                   .rules = "CAPTURE",
                   .lost = 1024 - 300});
  }
  for (const bool markers : {false, true}) {
    // One segment was never captured. With markers the next one begins inside an FPDU.
    startup s;
    s.markers = markers;
    talk t(s, s);
    for (std::uint32_t i = 1; i <= 3; ++i) t.say(side::client, send(i, counted(900)));
    const octets fourth = t.client(send(4, counted(900)));
    const std::size_t lost = fourth.size();
    t.tcp.lose(side::client, lost);
    for (std::uint32_t i = 5; i <= 8; ++i) t.say(side::client, send(i, counted(900)));
    t.tcp.close();
    all.push_back({.name = markers ? "hole-markers" : "hole",
                   .frames = t.tcp.frames,
                   .operations = repeat("Send", 7),
                   .fpdus = 7,
                   .rules = "TCP",
                   .lost = lost});
  }
  {
    // A hole that begins and ends inside FPDUs. The first of them had its headers captured, so it is told, cut.
    talk t;
    octets stream;
    for (std::uint32_t i = 1; i <= 8; ++i) stream = stream + t.client(send(i, counted(1000)));
    const auto at = [&](std::size_t n) { return stream.begin() + static_cast<std::ptrdiff_t>(n); };
    t.tcp.say(side::client, octets(at(0), at(2 * 1024 + 100)));
    t.tcp.lose(side::client, 1448);
    t.tcp.say(side::client, octets(at(2 * 1024 + 1548), stream.end()));
    t.tcp.close();
    all.push_back({.name = "hole-across-fpdus",
                   .frames = t.tcp.frames,
                   .operations = repeat("Send", 7),
                   .fpdus = 7,
                   .rules = "TCP TCP",
                   .lost = 924 + 1024});
  }
  {
    talk t({}, {}, {.snap = 100});
    chat(t, 3, 900);
    entry e = finished("snap-length", t, repeat("Send Write", 3), 6);
    // The Request and the Reply fit in what was captured; of every FPDU the headers do.
    e.lost = 0;
    for (const frame& f : e.frames) e.lost += f.length - f.data.size();
    e.rules = "CAPTURE CAPTURE";
    all.push_back(std::move(e));
  }
  {
    // Too little of a Read Request, an Atomic Request and a Terminate to know what they say.
    talk t({}, {}, {.snap = 90});
    t.say(side::client, read_request(1, {.sink = {9}, .size = 500, .source = {3}}));
    t.say(side::server, read_response(9, 0, counted(500)));
    t.say(side::client, atomic_request(2, {.identifier = 7, .remote = {5}}));
    t.say(side::server, atomic_response(1, {.identifier = 7, .value = 41}));
    t.say(side::server, terminate(from_hex("1202c000 001c4143 00000000 00000000 00000009 00000000")));
    entry e = finished("snap-length-reads", t, "ReadReq ReadResp AtomicReq AtomicResp Terminate", 5);
    for (const frame& f : e.frames) e.lost += f.length - f.data.size();
    e.rules = "CAPTURE CAPTURE";
    all.push_back(std::move(e));
  }
  {
    // The Request was not captured: the Reply and the chain of FPDUs tell all but CRC and markers, and the CRC shows.
    talk t;
    t.tcp.frames.erase(t.tcp.frames.begin() + 3);
    chat(t, 40, 100);
    entry e = finished("request-missing", t, repeat("Send Write", 40), 80);
    e.lost = 24;
    e.rules = "TCP";
    all.push_back(std::move(e));
  }
  {
    const rdmap::atomic_request add{
        .identifier = 7, .remote = {0x11223344}, .remote_offset = 0x2000, .data = 1, .compare_mask = ~std::uint64_t{0}};
    talk t;
    t.say(side::client, atomic_request(1, add));
    t.say(side::server, atomic_response(1, {.identifier = 7, .value = 41}));
    t.say(side::client, untagged(opcode::immediate, 0, 1, counted(8)));
    t.say(side::server, untagged(opcode::immediate_solicited, 0, 1, counted(8)));
    all.push_back(finished("rfc-7306", t, "AtomicReq AtomicResp Immediate ImmSE", 4));
  }
  {
    talk t;
    t.say(side::client, send(1, counted(10)));
    t.say(side::server, terminate(from_hex("1202c000 001c4143 00000000 00000000 00000009 00000000")));
    all.push_back(finished("terminate", t, "Send Terminate", 2));
  }
  {
    talk t;
    t.say(side::client, send(1, counted(10)));
    t.say(side::server, terminate(from_hex("21030300 001c4143 00000000 00000000 00000009 00000000")));
    entry e = finished("terminate-siw", t, "Send Terminate", 2);
    e.rules = "RDMAP-40";
    all.push_back(std::move(e));
  }
  for (const link l : {link::vlan, link::qinq, link::cooked, link::cooked2, link::raw, link::loopback}) {
    for (const bool ipv6 : {false, true}) {
      tcp_options o{.layer = l, .ipv6 = ipv6, .ipv6_extensions = ipv6 ? 3 : 0};
      talk t({}, {}, o);
      chat(t, 2, 300);
      static const char* const names[] = {"ethernet", "vlan", "qinq", "cooked", "cooked2", "raw", "loopback"};
      entry e = finished(std::string("link-") + names[static_cast<int>(l)] + (ipv6 ? "-ipv6" : ""), t,
                         repeat("Send Write", 2), 4);
      e.link_type = dlt(l);
      all.push_back(std::move(e));
    }
  }
  {
    talk t({}, {}, {.fragment = 256});
    chat(t, 2, 1000);
    all.push_back(finished("ip-fragments", t, repeat("Send Write", 2), 4));
  }
  {
    tcp_options o{.client_isn = 0xFFFFFF00u, .server_isn = 0xFFFFFFFFu};
    talk t({}, {}, o);
    chat(t, 4, 700);
    all.push_back(finished("sequence-wrap", t, repeat("Send Write", 4), 8));
  }
  {
    // Three connections between the same two ports, one after the other.
    std::vector<frame> frames;
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i != 3; ++i) {
      tcp_options o{.client_isn = 1000 + i * 100'000, .server_isn = 77 + i};
      talk t({}, {}, o);
      t.tcp.now += now;
      chat(t, 1, 100);
      if (i == 1) {
        t.tcp.reset(side::client);
      } else {
        t.tcp.close();
      }
      frames.insert(frames.end(), t.tcp.frames.begin(), t.tcp.frames.end());
      now += 1'000'000;
    }
    all.push_back({.name = "same-ports-again",
                   .frames = frames,
                   .operations = repeat("Send Write", 3),
                   .fpdus = 6,
                   .streams = 3});
  }
  {
    // Another protocol first, then MPA (RFC 5044 s7.1 lets the ULP decide when).
    tcp_talk tcp;
    tcp.open();
    tcp.say(side::client, counted(40));
    tcp.say(side::server, counted(70));
    tcp.say(side::client, request());
    tcp.say(side::server, reply());
    fpdu_stream client;
    tcp.say(side::client, client(send(1, counted(33))));
    tcp.close();
    all.push_back({.name = "startup-behind-another-protocol", .frames = tcp.frames, .operations = "Send", .fpdus = 1});
  }
  {
    tcp_talk tcp({.server_port = 80});
    tcp.open();
    for (int i = 0; i != 100; ++i) tcp.say(i % 2 == 0 ? side::client : side::server, counted(1000));
    tcp.close();
    all.push_back({.name = "not-iwarp", .frames = tcp.frames, .operations = "", .fpdus = 0, .streams = 0});
  }
  return all;
}

}  // namespace iwarp::dump_test
