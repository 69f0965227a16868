// What verbs says on the wire to a peer that breaks the rules, octet by octet, and that such a peer costs nobody else
// anything. The peer is a plain TCP socket.
#include <array>
#include <thread>

#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using rdmap::opcode;
using verbs::event_kind;
using verbs::qp_state;
using verbs::status;
using tc = rdmap::term_code;

/// One victim, connected to a raw peer, and a bystander of the same context, connected to another.
class VerbsWire : public testing::Test {
 protected:
  VerbsWire() {
    connect(bystander_, friend_);
    fresh();
  }
  ~VerbsWire() override {
    EXPECT_TRUE(undisturbed());
    EXPECT_TRUE(victim_->memory.intact());
  }

  void connect(side& s, std::optional<raw_peer>& peer, const verbs::connect_options& options = without_rtr()) {
    ASSERT_TRUE(s.qp.connect(listener_.local(), options));
    peer.emplace(listener_.accept());
    ASSERT_TRUE(peer->accept());
    s.expect(event_kind::established);
  }
  /// A new victim with untouched memory.
  void fresh(const verbs::connect_options& options = without_rtr(), const side_options& how = {.memory = 4096}) {
    victim_.reset();
    victim_.emplace(node_, how);
    std::ranges::fill(victim_->memory.bytes(), std::byte{0x3C});
    connect(*victim_, peer_, options);
  }
  /// The victim ends with this Terminate as its last word, then FIN, and its memory is as it was.
  void expect_terminate(tc want, std::error_code reason = {}) {
    const auto t = peer_->terminate();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, want) << rdmap::describe(t->code);
    EXPECT_TRUE(peer_->socket.receive(1).empty()) << "RDMAP-43: nothing follows a Terminate";
    EXPECT_EQ(peer_->socket.wait_end(), raw_socket::ending::fin);
    peer_->socket.fin();
    EXPECT_TRUE(all_are(victim_->memory.bytes(), std::byte{0x3C}));
    const auto e = victim_->expect(event_kind::disconnected);
    ASSERT_TRUE(e.sent_terminate);
    EXPECT_EQ(e.sent_terminate->code, want);
    if (reason) {
      EXPECT_EQ(e.reason, reason) << e.reason_text;
    }
    EXPECT_TRUE(victim_->wait_state(qp_state::error));
  }
  bool undisturbed() {
    bystander_.receive(++round_, 0, 100);
    EXPECT_TRUE(friend_->send_ulpdu(untagged(opcode::send, static_cast<std::uint32_t>(round_), pattern(100, round_))));
    bystander_.expect(round_);
    return matches(bystander_.memory.bytes().first(100), round_);
  }
  [[nodiscard]] verbs::remote_buffer target() const { return victim_->region.remote(); }

  node node_;
  raw_listener listener_;
  side bystander_{node_};
  std::optional<raw_peer> friend_;
  std::optional<side> victim_;
  std::optional<raw_peer> peer_;
  std::uint64_t round_ = 0;
};

// MPA-36, MPA-43, E1, SEC-24: any one bit wrong, and nothing is placed or delivered; Terminate 2/0/02 without headers.
TEST_F(VerbsWire, EveryFlippedBitIsFoundBeforeAnythingIsPlaced) {
  const std::size_t size = fpdu(tagged(opcode::write, stag{1}, 0, pattern(10, 1))).size();
  for (std::size_t bit = 0; bit < size * 8; ++bit) {
    SCOPED_TRACE(testing::Message() << "octet " << bit / 8 << " bit " << bit % 8);
    if (bit != 0) fresh();
    octets bad = fpdu(tagged(opcode::write, target().key, target().offset, pattern(10, 1)));
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    if (bit < 16) bad.resize(bad.size() + 70'000);  // the FPDU may have become longer
    peer_->socket.send(bad);
    const auto t = peer_->terminate();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, (tc{2, 0, 2}));
    EXPECT_FALSE(t->segment_length_valid);
    EXPECT_EQ(t->ddp_header_size, 0u);
    EXPECT_TRUE(all_are(victim_->memory.bytes(), std::byte{0x3C}));
    EXPECT_EQ(victim_->expect(event_kind::disconnected).reason, mpa::errc::crc_mismatch);
    if (bit % 64 == 0) {
      EXPECT_TRUE(undisturbed());
    }
  }
}

// Without CRC by both sides' wish the CRC field is not looked at.
TEST_F(VerbsWire, WithoutCrcTheFieldIsIgnored) {
  victim_.reset();
  victim_.emplace(node_, side_options{.memory = 4096});
  verbs::connect_options options = without_rtr();
  options.crc = false;
  ASSERT_TRUE(victim_->qp.connect(listener_.local(), options));
  peer_.emplace(listener_.accept());
  ASSERT_TRUE(peer_->accept({.crc = false}));
  EXPECT_FALSE(victim_->expect(event_kind::established).crc);
  octets one = fpdu(tagged(opcode::write, target().key, target().offset, pattern(10, 1)));
  one.back() ^= std::byte{0xFF};
  peer_->socket.send(one);
  EXPECT_TRUE(wait_until([&] { return victim_->qp.counters().fpdus_in == 1; }));
  EXPECT_TRUE(matches(victim_->memory.bytes().first(10), 1));
}

// Field fault B001, E7: ULPDUs shorter than their headers, of every opcode and length.
TEST_F(VerbsWire, UlpdusShorterThanTheirHeaders) {
  std::vector<octets> whole = {tagged(opcode::write, target().key, target().offset, {}),
                               tagged(opcode::read_response, target().key, target().offset, {})};
  for (const opcode op :
       {opcode::send, opcode::send_invalidate, opcode::send_solicited, opcode::send_solicited_invalidate}) {
    whole.push_back(untagged(op, 1, {}));
  }
  whole.push_back(read_request(1, {}));
  whole.push_back(untagged(opcode::terminate, 1, pattern(4, 0)));
  for (const octets& unit : whole) {
    for (std::size_t size = 0; size < unit.size(); ++size) {
      SCOPED_TRACE(testing::Message() << "control " << std::to_integer<int>(unit[1]) << ", " << size << " octets");
      fresh();
      victim_->receive(1, 0, 100);
      peer_->send_ulpdu(const_bytes(unit).first(size));
      expect_terminate({1, 0, 0}, ddp::errc::segment_too_short);
      victim_->expect(1, status::flushed);
    }
  }
}

struct wire_case {
  const char* name;
  octets (*unit)(verbs::remote_buffer target);
  tc want;
};

octets with(octets unit, std::size_t at, std::uint8_t value) {
  unit[at] = static_cast<std::byte>(value);
  return unit;
}

// E8..E14, E30, E35 and the like: field fault B004, the very first FPDU of a connection is wrong.
// RDMAP-03, -04, -06, -29, -62, -70, DDP versions, queues, sequence numbers, offsets.
TEST_F(VerbsWire, WrongHeadersOfTheFirstFpdu) {
  using b = verbs::remote_buffer;
  const std::vector<wire_case> cases = {
      {"DDP version 0, tagged",
       [](b t) { return with(tagged(opcode::write, t.key, t.offset, pattern(8, 1)), 0, 0xC0); },
       {1, 1, 4}},
      {"DDP version 3, tagged",
       [](b t) { return with(tagged(opcode::write, t.key, t.offset, pattern(8, 1)), 0, 0xC3); },
       {1, 1, 4}},
      {"DDP version 0, untagged", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 0, 0x40); }, {1, 2, 6}},
      {"DDP version 2, untagged", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 0, 0x42); }, {1, 2, 6}},
      {"RDMAP version 0, tagged",
       [](b t) { return with(tagged(opcode::write, t.key, t.offset, pattern(8, 1)), 1, 0x00); },
       {0, 2, 5}},
      {"RDMAP version 2, untagged",
       [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 1, 0x83); },
       {0, 2, 5}},
      {"opcode F, untagged", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 1, 0x4F); }, {0, 2, 6}},
      {"opcode C, tagged",
       [](b t) { return with(tagged(opcode::write, t.key, t.offset, pattern(8, 1)), 1, 0x4C); },
       {0, 2, 6}},
      {"Send, tagged",
       [](b t) { return with(tagged(opcode::write, t.key, t.offset, pattern(8, 1)), 1, 0x43); },
       {0, 2, 6}},
      {"Write, untagged", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 1, 0x40); }, {0, 2, 6}},
      {"Read Response that nobody asked for",
       [](b t) { return tagged(opcode::read_response, t.key, t.offset, pattern(8, 1)); },
       {0, 2, 6}},
      {"Send on queue 1", [](b) { return with(untagged(opcode::send, 1, pattern(28, 1)), 9, 1); }, {0, 2, 6}},
      {"Read Request on queue 0", [](b) { return with(read_request(1, {}), 9, 0); }, {0, 2, 6}},
      {"Terminate on queue 0", [](b) { return with(untagged(opcode::terminate, 1, pattern(8, 0)), 9, 0); }, {0, 2, 6}},
      {"queue 3", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 9, 3); }, {1, 2, 1}},
      {"queue 2^24", [](b) { return with(untagged(opcode::send, 1, pattern(8, 1)), 6, 1); }, {1, 2, 1}},
      {"MSN 0", [](b) { return untagged(opcode::send, 0, pattern(8, 1)); }, {1, 2, 3}},
      {"MSN 2", [](b) { return untagged(opcode::send, 2, pattern(8, 1)); }, {1, 2, 3}},
      {"MSN 2^32-1", [](b) { return untagged(opcode::send, ~0u, pattern(8, 1)); }, {1, 2, 3}},
      {"Read Request MSN 2", [](b) { return read_request(2, {}); }, {1, 2, 3}},
      {"MO 1", [](b) { return untagged(opcode::send, 1, pattern(8, 1), 1); }, {1, 2, 4}},
      {"MO 2^32-1", [](b) { return untagged(opcode::send, 1, pattern(8, 1), ~0u); }, {1, 2, 4}},
      {"Read Request MO 4", [](b) { return with(read_request(1, {}), 17, 4); }, {1, 2, 4}},
      {"Read Request not last", [](b) { return with(read_request(1, {}), 0, 0x01); }, {0, 2, 0xFF}},
      {"Read Request too long", [](b) { return untagged(opcode::read_request, 1, pattern(29, 0)); }, {1, 2, 5}},
      {"Send too long", [](b) { return untagged(opcode::send, 1, pattern(101, 1)); }, {1, 2, 5}},
      {"Terminate in two segments",
       [](b) { return untagged(opcode::terminate, 1, pattern(8, 0), 0, false); },
       {0, 2, 7}},
      {"Immediate Data", [](b) { return untagged(opcode::immediate, 1, pattern(8, 1)); }, {0, 2, 6}},
      {"Atomic Request", [](b) { return untagged(opcode::atomic_request, 1, pattern(52, 1)); }, {0, 2, 6}},
      {"Atomic Response", [](b) { return untagged(opcode::atomic_response, 1, pattern(12, 1)); }, {1, 2, 1}},
  };
  for (const wire_case& c : cases) {
    SCOPED_TRACE(c.name);
    fresh();
    victim_->receive(1, 0, 100);
    const octets unit = c.unit(target());
    peer_->send_ulpdu(unit);
    const auto t = peer_->terminate();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, c.want) << rdmap::describe(t->code);
    if (t->ddp_header_size != 0) {
      EXPECT_EQ(t->segment_length, unit.size());
      EXPECT_TRUE(std::equal(unit.begin(), unit.begin() + static_cast<std::ptrdiff_t>(t->ddp_header_size),
                             t->ddp_header.begin()));
    } else {
      ADD_FAILURE() << "RDMAP-62: the header of the segment in error is missing";
    }
    EXPECT_TRUE(all_are(victim_->memory.bytes(), std::byte{0x3C}));
    victim_->expect(event_kind::disconnected);
    EXPECT_TRUE(victim_->settle());
    EXPECT_TRUE(undisturbed());
  }
}

// Field fault B005: a bad header that comes octet by octet ends alike, wherever it is cut.
TEST_F(VerbsWire, ABadHeaderCutAnywhere) {
  for (std::size_t cut = 1; cut < 28; ++cut) {
    SCOPED_TRACE(cut);
    fresh();
    const octets bad = fpdu(with(untagged(opcode::send, 1, pattern(8, 1)), 1, 0x4F));
    peer_->socket.send(const_bytes(bad).first(cut));
    ASSERT_TRUE(wait_until([&] { return victim_->qp.counters().octets_in == cut; }));
    EXPECT_EQ(victim_->qp.state(), qp_state::rts);
    peer_->socket.send(const_bytes(bad).subspan(cut));
    expect_terminate({0, 2, 6}, rdmap::errc::unexpected_opcode);
  }
}

// A good message octet by octet is a good message (field faults B125, B139).
TEST_F(VerbsWire, AGoodMessageCutAnywhere) {
  victim_->receive(1, 100, 1000);
  octets stream = fpdu(tagged(opcode::write, target().key, target().offset, pattern(21, 5)));
  const octets second = fpdu(untagged(opcode::send, 1, pattern(30, 6)));
  stream.insert(stream.end(), second.begin(), second.end());
  for (std::size_t i = 0; i < stream.size(); ++i) {
    peer_->socket.send(const_bytes(stream).subspan(i, 1));
    ASSERT_TRUE(wait_until([&] { return victim_->qp.counters().octets_in == i + 1; }));
  }
  victim_->expect(1);
  EXPECT_TRUE(matches(victim_->memory.bytes().first(21), 5));
  EXPECT_TRUE(matches(victim_->memory.bytes().subspan(100, 30), 6));
  EXPECT_TRUE(all_are(victim_->memory.bytes().subspan(130), std::byte{0x3C}));
}

octets say(rdmap::read_request asked, std::uint64_t at, std::size_t size) {
  return tagged(opcode::read_response, asked.sink, asked.sink_offset + at, pattern(size, 1));
}

// E23, E24, RDMAP-19, RDMAP-28, RDMAP-29, field fault B002: Read Responses that are not what was asked for. The sink is
// the middle of a region; the request completes with bad_response.
TEST_F(VerbsWire, ReadResponsesThatDoNotMatch) {
  using asked_for = rdmap::read_request;
  struct response_case {
    const char* name;
    octets (*unit)(asked_for asked);
    tc want;
  };
  const std::vector<response_case> cases = {
      {"other STag",
       [](asked_for a) {
         a.sink.value ^= 1;
         return say(a, 0, 64);
       },
       {1, 1, 0}},
      {"offset below", [](asked_for a) { return say(a, ~0ull, 64); }, {1, 1, 1}},
      {"offset behind", [](asked_for a) { return say(a, 64, 1); }, {1, 1, 1}},
      {"one octet too long", [](asked_for a) { return say(a, 0, 65); }, {1, 1, 1}},
      {"one octet too short", [](asked_for a) { return say(a, 0, 63); }, {1, 1, 1}},
      {"empty", [](asked_for a) { return say(a, 0, 0); }, {1, 1, 1}},
  };
  for (const response_case& c : cases) {
    SCOPED_TRACE(c.name);
    fresh();
    victim_->read(1, 1000, 64, {stag{0x7700}, 5});
    victim_->read(2, 2000, 64, {stag{0x7700}, 5});
    const auto unit = peer_->ulpdu();
    ASSERT_TRUE(unit);
    const auto asked =
        rdmap::read_request::parse(std::span(*unit).subspan<ddp::untagged_header_size, rdmap::read_request_size>());
    EXPECT_EQ(asked.size, 64u);
    EXPECT_EQ(asked.source, stag{0x7700});
    peer_->send_ulpdu(c.unit(asked));
    const auto t = peer_->terminate();
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, c.want) << rdmap::describe(t->code);
    EXPECT_TRUE(all_are(victim_->memory.bytes().first(1000), std::byte{0x3C}));
    EXPECT_TRUE(all_are(victim_->memory.bytes().subspan(1064), std::byte{0x3C}));
    victim_->expect(1, status::bad_response);
    victim_->expect(2, status::flushed);
  }
  // Never the last segment: octets beyond the request go nowhere.
  fresh();
  victim_->read(1, 1000, 64, {stag{0x7700}, 5});
  ASSERT_TRUE(peer_->ulpdu());
  const auto sink = victim_->region.remote(1000);
  for (std::uint64_t i = 0; i < 4; ++i) {
    peer_->send_ulpdu(tagged(opcode::read_response, sink.key, sink.offset + 64 * i, pattern(64, 1), false));
  }
  const auto t = peer_->terminate();
  ASSERT_TRUE(t);
  EXPECT_EQ(t->code, (tc{1, 1, 1}));
  victim_->expect(1, status::bad_response);
  EXPECT_TRUE(all_are(victim_->memory.bytes().first(1000), std::byte{0x3C}));
  EXPECT_TRUE(all_are(victim_->memory.bytes().subspan(1064), std::byte{0x3C}));
}

// E16, SEC-12, RDMAP-23: more Reads than the IRD agreed on end the connection with 1/2/02.
TEST_F(VerbsWire, MoreReadsThanTheIrd) {
  verbs::connect_options options = without_rtr();
  options.ird = 2;
  constexpr std::uint32_t size = 16 << 20;  // more than TCP takes, so that none is answered whole meanwhile
  victim_.reset();
  victim_.emplace(node_, side_options{.memory = size});
  ASSERT_TRUE(victim_->qp.connect(listener_.local(), options));
  peer_.emplace(listener_.accept());
  ASSERT_TRUE(peer_->accept({.ird = 16, .ord = 2}));
  victim_->expect(event_kind::established);
  EXPECT_EQ(victim_->qp.ird(), 2);
  octets all;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const octets one = fpdu(
        read_request(i, {.sink = stag{0x100}, .size = size, .source = target().key, .source_offset = target().offset}));
    all.insert(all.end(), one.begin(), one.end());
  }
  peer_->socket.send(all);
  const auto t = peer_->terminate();
  ASSERT_TRUE(t);
  EXPECT_EQ(t->code, (tc{1, 2, 2}));
  EXPECT_EQ(victim_->expect(event_kind::disconnected).reason, ddp::errc::untagged_no_buffer);
}

// VRB-32, RDMAP-64, VRB-38: the first message in error is the one that is reported, and nothing behind it is done.
TEST_F(VerbsWire, TheFirstErrorWinsAndEndsEverything) {
  victim_->receive(1, 0, 100);
  octets all;
  for (const octets& unit : {untagged(opcode::send, 9, pattern(8, 1)),  // this one
                             tagged(opcode::write, target().key, target().offset, pattern(8, 1)),
                             untagged(opcode::send, 1, pattern(8, 1)), with(untagged(opcode::send, 1, {}), 1, 0x4F)}) {
    const octets framed = fpdu(unit);
    all.insert(all.end(), framed.begin(), framed.end());
  }
  peer_->socket.send(all);
  peer_->socket.send(pattern(1000, 7));  // not even FPDUs
  expect_terminate({1, 2, 3}, ddp::errc::untagged_msn_out_of_range);
  victim_->expect(1, status::flushed);
}

// VRB-31: an error found while a message is being sent: what is out are whole FPDUs, then the Terminate.
TEST_F(VerbsWire, ATerminateComesAtAnFpduBoundary) {
  side_options how{.memory = 16 << 20};
  for (int round = 0; round < 5; ++round) {
    fresh({}, how);
    victim_->write(1, 0, 16 << 20, {stag{0x900}, 0});
    // Part of it is on its way; TCP is full, perhaps inside an FPDU.
    ASSERT_TRUE(wait_until([&] { return victim_->qp.counters().octets_out > 100'000; }));
    peer_->send_ulpdu(untagged(opcode::send, 5, {}));
    ASSERT_TRUE(wait_until([&] { return victim_->qp.sent_terminate().has_value(); }));
    const auto t = peer_->terminate();  // checks length and CRC of everything before it
    ASSERT_TRUE(t);
    EXPECT_EQ(t->code, (tc{1, 2, 3}));
    victim_->expect(1, status::flushed);
    victim_->expect(event_kind::disconnected);
  }
}

// RDMAP-41, -42, -49, -69, VRB-37: a Terminate of any shape is taken without a receive, told, and not answered.
TEST_F(VerbsWire, TerminatesOfEveryShapeAreTakenAndNotAnswered) {
  for (int shape = 0; shape < 8; ++shape) {
    for (const std::size_t size : {4u, 5u, 6u, 10u, 20u, 24u, 51u, 52u, 60u}) {
      SCOPED_TRACE(testing::Message() << "M/D/R " << shape << ", " << size << " octets");
      fresh();
      victim_->receive(1, 0, 100);
      octets message = pattern(size, 3);
      message[0] = std::byte{0x11};                              // DDP, tagged buffer
      message[1] = std::byte{0x01};                              // base or bounds
      message[2] = static_cast<std::byte>((shape << 5) | 0x1F);  // reserved bits are ignored
      message[3] = std::byte{0xFF};
      peer_->send_ulpdu(untagged(opcode::terminate, 1, message));
      const auto e = victim_->expect(event_kind::disconnected);
      EXPECT_EQ(e.reason, rdmap::errc::terminated_by_peer);
      ASSERT_TRUE(e.received_terminate);
      EXPECT_EQ(e.received_terminate->code, (tc{1, 1, 1}));
      EXPECT_FALSE(e.sent_terminate);
      victim_->expect(1, status::flushed);
      EXPECT_TRUE(peer_->socket.receive(1).empty());
      EXPECT_TRUE(victim_->wait_state(qp_state::error));
      EXPECT_EQ(victim_->qp.received_terminate()->code, (tc{1, 1, 1}));
    }
  }
}

// The status of a request that a Terminate names (protocol.md 4.8): the Read it is about, by MSN; others are flushed.
TEST_F(VerbsWire, ATerminateNamesTheReadThatFailed) {
  for (std::uint64_t i = 1; i <= 4; ++i) victim_->read(i, 0, 100, {stag{0x7000}, i});
  std::array<octets, 4> requests;
  for (auto& r : requests) r = *peer_->ulpdu();
  // The second is refused; the first is answered.
  const auto sink = victim_->region.remote(0);
  peer_->send_ulpdu(tagged(opcode::read_response, sink.key, sink.offset, pattern(100, 1)));
  rdmap::terminate_message t;
  t.code = {0, 1, 2};
  t.segment_length_valid = true;
  t.segment_length = 46;
  std::copy_n(requests[1].begin(), 18, t.ddp_header.begin());
  t.ddp_header_size = 18;
  t.request = rdmap::read_request::parse(std::span(requests[1]).subspan<18, 28>());
  std::array<std::byte, rdmap::max_terminate_size> out;
  peer_->send_ulpdu(untagged(opcode::terminate, 1, std::span(out).first(t.emit(out))));
  victim_->expect(1);
  victim_->expect(2, status::remote_access);
  victim_->expect(3, status::flushed);
  victim_->expect(4, status::flushed);
  victim_->expect(event_kind::disconnected);
}

// FIN in the middle of an FPDU is a lost connection; between messages it is an end.
TEST_F(VerbsWire, FinAnywhere) {
  const octets whole = fpdu(untagged(opcode::send, 1, pattern(10, 1)));
  for (std::size_t cut = 0; cut < whole.size(); cut += 3) {
    SCOPED_TRACE(cut);
    fresh();
    peer_->socket.send(const_bytes(whole).first(cut));
    peer_->socket.fin();
    const auto e = victim_->expect(event_kind::disconnected);
    if (cut == 0) {  // VRB-04
      EXPECT_FALSE(e.reason);
      EXPECT_EQ(victim_->qp.state(), qp_state::idle);
    } else {
      EXPECT_EQ(e.reason, mpa::errc::tcp_lost);
      EXPECT_EQ(victim_->qp.state(), qp_state::error);
    }
  }
}

// Many small steps of hostile peers at once do not keep the others from working (SEC-24 of protocol.md 7.5).
TEST_F(VerbsWire, ACrowdOfHostilePeers) {
  std::vector<std::thread> crowd;
  auto channel = *verbs::event_channel::create(node_.context);
  auto listener = *verbs::listener::create(channel, setup{}.loopback(), {});
  std::atomic<bool> stop{false};
  std::thread acceptor([&] {
    std::vector<std::unique_ptr<side>> taken;
    while (!stop.load()) {
      while (const auto e = channel.poll()) {
        taken.push_back(std::make_unique<side>(node_, side_options{.cq_depth = 16, .memory = 64}));
        (void)taken.back()->qp.accept(e->request);
      }
      if (taken.size() > 50) taken.clear();
      std::this_thread::yield();
    }
  });
  for (unsigned t = 0; t < 4; ++t) {
    crowd.emplace_back([&, t] {
      std::uint64_t seed = t;
      for (int i = 0; i < 60; ++i) {
        raw_peer peer = raw_peer::connect(listener.local());
        if (i % 4 != 0) peer.send_request();
        peer.socket.send(pattern(1 + i * 37 % 500, ++seed));
        if (i % 3 == 0) peer.socket.send(fpdu(pattern(20 + i, ++seed)));
        if (i % 2 == 0) peer.socket.reset();
      }
    });
  }
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(undisturbed());
  for (auto& t : crowd) t.join();
  stop.store(true);
  acceptor.join();
}

}  // namespace
}  // namespace iwarp::verbs_test
