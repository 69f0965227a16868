// Each situation of the error table in which the peer is at fault, with the exact octets of the Terminate that answers
// it: as the first FPDU of a connection and later, with and without markers, read whole and octet by octet. Nothing is
// placed, nothing is sent behind the Terminate, what arrives later is ignored.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/rdmap/scripted_peer.hpp"
#include "tests/support/hex.hpp"

namespace iwarp::stream_test {
namespace {

using rdmap::stream_event;
using rdmap::stream_state;
using rdmap::wr_status;
using test_support::from_hex;
using test_support::to_hex;

constexpr std::uint32_t shared = 0x11223344;        // remote read and write
constexpr std::uint32_t read_only = 0x22000001;     //
constexpr std::uint32_t write_only = 0x23000001;    //
constexpr std::uint32_t other_domain = 0x33000001;  // every right, another protection domain
constexpr std::uint32_t invalid = 0x44000001;       // invalidated before
constexpr std::uint32_t kept = 0x55000001;          // may not be invalidated from afar
constexpr std::uint32_t local_only = 0x66000001;    // no remote right
constexpr std::uint32_t unknown = 0x77000001;
constexpr std::uint64_t base = 0x1000;  // TO of the first octet of each
constexpr std::size_t size = 256;
constexpr std::size_t receive_size = 100;

struct regions {
  explicit regions(scripted_peer& peer) {
    const auto add = [&](std::uint32_t key, region_rights rights) {
      all.push_back(&peer.side.user.add(size, rights, key, base));
    };
    add(shared, {.remote_read = true, .remote_write = true});
    add(read_only, {.remote_read = true});
    add(write_only, {.remote_write = true});
    add(other_domain, {.remote_read = true, .remote_write = true, .domain = 2});
    add(invalid, {.remote_read = true, .remote_write = true});
    all.back()->valid = false;
    add(kept, {.remote_read = true, .remote_write = true, .invalidatable = false});
    add(local_only, {});
    all.push_back(&peer.side.user.add(receive_size));
    peer.side.user.post_receive(*all.back());
  }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(all, [](region* r) { return r->copy() == octets(r->size()); });
  }
  std::vector<region*> all;
};

enum class shown { nothing, ddp_header, request_too };

struct fault {
  const char* name;
  octets ulpdu;
  std::uint8_t layer_and_type;
  std::uint8_t code;
  shown headers = shown::ddp_header;
  wr_status receive = wr_status::flushed;  // of the receive, if the fault takes it
};

const octets four = from_hex("deadbeef");
octets read_of(const read_words& words) { return read_request_segment(1, words); }
octets write_of(std::uint32_t stag, std::uint64_t at) { return segment(tagged{.stag = stag, .offset = at}, four); }
octets send_invalidate(std::uint32_t stag) { return segment(untagged{.op = 4, .invalidate = stag}); }

// Rows of table E, in its order.
std::vector<fault> faults() {
  std::vector<fault> all;
  // E8; DDP-04: DDP version
  for (const std::uint8_t dv : {std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{3}}) {
    all.push_back(
        {"TaggedDdpVersion", segment(tagged{.stag = shared, .offset = base, .ddp_version = dv}, four), 0x11, 4});
    all.push_back({"UntaggedDdpVersion", segment(untagged{.ddp_version = dv}, four), 0x12, 6});
  }
  // E9; RDMAP-03: RDMAP version
  for (const std::uint8_t rv : {std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{3}}) {
    all.push_back(
        {"TaggedRdmapVersion", segment(tagged{.stag = shared, .offset = base, .rdmap_version = rv}, four), 0x02, 5});
    all.push_back({"UntaggedRdmapVersion", segment(untagged{.rdmap_version = rv}, four), 0x02, 5});
  }
  // E10; RDMAP-04, RDMAP-06: opcodes that do not exist, or not here
  for (std::uint8_t op = 8; op < 16; ++op) {
    all.push_back({"UntaggedOpcode", segment(untagged{.op = op}, pattern(52, 1)), 0x02, 6});
    all.push_back({"TaggedOpcode", segment(tagged{.op = op, .stag = shared, .offset = base}, four), 0x02, 6});
  }
  for (const std::uint8_t op :
       {std::uint8_t{1}, std::uint8_t{3}, std::uint8_t{4}, std::uint8_t{5}, std::uint8_t{6}, std::uint8_t{7}})
    all.push_back({"TaggedThoughUntagged", segment(tagged{.op = op, .stag = shared, .offset = base}, four), 0x02, 6});
  for (const std::uint8_t op : {std::uint8_t{0}, std::uint8_t{2}})
    all.push_back({"UntaggedThoughTagged", segment(untagged{.op = op}, four), 0x02, 6});
  all.push_back({"SendOnQueue1", segment(untagged{.op = 3, .queue = 1}, four), 0x02, 6});
  all.push_back({"SendOnQueue2", segment(untagged{.op = 3, .queue = 2}, four), 0x02, 6});
  all.push_back({"ReadRequestOnQueue0", segment(untagged{.op = 1}, pattern(28, 1)), 0x02, 6});
  all.push_back({"TerminateOnQueue0", segment(untagged{.op = 7}, pattern(28, 1)), 0x02, 6});
  // E11; DDP-26: queues that do not exist
  all.push_back({"Queue3", segment(untagged{.queue = 3}, four), 0x12, 1});
  all.push_back({"QueueLast", segment(untagged{.queue = 0xFFFFFFFF}, four), 0x12, 1});
  // E13; DDP-28
  for (const std::uint32_t sequence : {0u, 2u, 0x80000001u, 0xFFFFFFFFu}) {
    all.push_back({"SendSequence", segment(untagged{.sequence = sequence}, four), 0x12, 3});
    all.push_back(
        {"ReadRequestSequence", read_request_segment(sequence, {.source = shared, .source_offset = base}), 0x12, 3});
  }
  // E14; DDP-29
  all.push_back({"SendOffset", segment(untagged{.offset = 1}, four), 0x12, 4});
  all.push_back({"SendOffsetWraps", segment(untagged{.offset = 0xFFFFFFFE}, four), 0x12, 4});
  all.push_back({"ReadRequestOffset", segment(untagged{.op = 1, .queue = 1, .offset = 4}, pattern(28, 1)), 0x12, 4});
  // E15; DDP-30, RDMAP-33
  all.push_back({"SendTooLong", segment(untagged{}, pattern(receive_size + 1, 1)), 0x12, 5, shown::ddp_header,
                 wr_status::local_length});
  // E18; DDP-31, RDMAP-14
  for (const std::uint32_t key : {unknown, invalid, shared ^ 1, shared & 0xFFFFFF00u, 0u, 1u, 0xFFFFFFFFu})
    all.push_back({"WriteStag", write_of(key, base), 0x11, 0});
  // E19; DDP-32, SEC-02: one octet beyond either end, and far away
  for (const std::uint64_t at : {base - 1, base + size - 3, base + size, std::uint64_t{0},
                                 base + (std::uint64_t{1} << 32), std::uint64_t{1} << 63})
    all.push_back({"WriteBounds", write_of(shared, at), 0x11, 1});
  // E20; DDP-33, SEC-01   E21; DDP-35, SEC-03   E22; DDP-34
  all.push_back({"WriteDomain", write_of(other_domain, base), 0x11, 2});
  all.push_back({"WriteRight", write_of(read_only, base), 0x11, 2});
  all.push_back({"WriteLocalOnly", write_of(local_only, base), 0x11, 2});
  all.push_back({"WriteWraps", write_of(shared, UINT64_MAX - 2), 0x11, 3});
  // E23; RDMAP-29
  all.push_back({"UnsolicitedResponse", segment(tagged{.op = 2, .stag = shared, .offset = base}, four), 0x02, 6});
  all.push_back({"UnsolicitedEmptyResponse", segment(tagged{.op = 2, .stag = shared, .offset = base}), 0x02, 6});
  // E25..E29; RDMAP-21, RDMAP-22, RDMAP-63, SEC-08
  for (const std::uint32_t key : {unknown, invalid, shared ^ 1, 0u})
    all.push_back(
        {"ReadStag", read_of({.size = 4, .source = key, .source_offset = base}), 0x01, 0, shown::request_too});
  for (const std::uint64_t at : {base - 1, base + size - 3, base + size})
    all.push_back(
        {"ReadBounds", read_of({.size = 4, .source = shared, .source_offset = at}), 0x01, 1, shown::request_too});
  all.push_back({"ReadSizeTooLarge", read_of({.size = 0xFFFFFFFF, .source = shared, .source_offset = base}), 0x01, 1,
                 shown::request_too});
  all.push_back(
      {"ReadRight", read_of({.size = 4, .source = write_only, .source_offset = base}), 0x01, 2, shown::request_too});
  all.push_back(
      {"ReadDomain", read_of({.size = 4, .source = other_domain, .source_offset = base}), 0x01, 3, shown::request_too});
  all.push_back({"ReadWraps", read_of({.size = 8, .source = shared, .source_offset = UINT64_MAX - 2}), 0x01, 4,
                 shown::request_too});
  // E30
  all.push_back({"ReadRequestTooLong", read_of({.source = shared, .source_offset = base}) + four, 0x12, 5});
  all.push_back(
      {"ReadRequestNotLast", segment(untagged{.op = 1, .queue = 1, .last = false}, pattern(28, 1)), 0x02, 0xFF});
  // E31..E34; RDMAP-37
  for (const std::uint32_t key : {unknown, shared ^ 1})
    all.push_back(
        {"InvalidateStag", send_invalidate(key), 0x01, 0, shown::ddp_header, wr_status::remote_invalid_request});
  all.push_back(
      {"InvalidateRight", send_invalidate(local_only), 0x01, 2, shown::ddp_header, wr_status::remote_invalid_request});
  all.push_back({"InvalidateDomain", send_invalidate(other_domain), 0x01, 3, shown::ddp_header,
                 wr_status::remote_invalid_request});
  all.push_back(
      {"InvalidateKept", send_invalidate(kept), 0x01, 9, shown::ddp_header, wr_status::remote_invalid_request});
  all.push_back({"InvalidateStag0", send_invalidate(0), 0x01, 9, shown::ddp_header, wr_status::remote_invalid_request});
  // E35
  all.push_back({"TerminateNotLast", segment(untagged{.op = 7, .queue = 2, .last = false}, pattern(4, 1)), 0x02, 7});
  // E7: shorter than the header of what it says it is; field fault B001. Every length for every opcode.
  for (std::uint8_t op = 0; op < 8; ++op) {
    const bool is_tagged = op == 0 || op == 2;
    const octets whole = is_tagged ? segment(tagged{.op = op, .stag = shared, .offset = base}, four)
                                   : segment(untagged{.op = op,
                                                      .queue = op == 1   ? 1u
                                                               : op == 7 ? 2u
                                                                         : 0u},
                                             pattern(28, 1));
    const std::size_t need = is_tagged ? 14 : op == 1 ? 46 : op == 7 ? 22 : 18;
    for (std::size_t n = 0; n < need; ++n)
      all.push_back(
          {"TooShort", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)}, 0x10, 0, shown::nothing});
  }
  return all;
}

octets answer_to(const fault& f) {
  return terminate_segment(f.layer_and_type, f.code, f.headers == shown::nothing ? octets{} : f.ulpdu,
                           f.headers == shown::request_too);
}

// What must hold once the Terminate is out, whatever the fault was.
void check_the_end(scripted_peer& peer, const regions& memory, const fault& f) {
  auto& side = peer.side;
  EXPECT_TRUE(memory.untouched()) << "DDP-25, DDP-36: nothing is placed";
  // DDP-37, MPA-78, VRB-38: later segments are taken and ignored.
  EXPECT_GT(peer.send(write_of(shared, base)), 0u);
  EXPECT_GT(peer.send(segment(untagged{}, four)), 0u);
  EXPECT_TRUE(memory.untouched());
  EXPECT_TRUE(peer.drain().empty());
  if (!side.user.receives.empty()) {
    EXPECT_EQ(side.user.receives[0].result.status, f.receive);
  }
  side.poll();
  // RDMAP-60: the ULP is told. RDMAP-66, RDMAP-68: both FINs end the connection.
  EXPECT_TRUE(side.told(stream_event::disconnected));
  EXPECT_TRUE(side.engine.error());
  ASSERT_TRUE(side.engine.sent_terminate());
  EXPECT_EQ(side.engine.sent_terminate()->code.code, f.code);
  EXPECT_EQ(side.engine.state(), stream_state::terminating);
  peer.eof();
  side.poll();
  EXPECT_TRUE(side.told(stream_event::closed));
  EXPECT_EQ(side.engine.wants(), mpa::disposition::close);
}

// (the peer initiates, the peer inserts markers, octets per read)
class Faults : public testing::TestWithParam<std::tuple<bool, bool, std::size_t>> {
 protected:
  rdmap::stream_options options() const {
    rdmap::stream_options o;
    o.startup.markers = std::get<1>(GetParam());
    return o;
  }
  peer_options role() const { return {.initiator = std::get<0>(GetParam()), .markers = std::get<1>(GetParam())}; }
  std::size_t chunk() const { return std::get<2>(GetParam()); }
};

// RDMAP-40, RDMAP-45, RDMAP-46, RDMAP-48, RDMAP-62, RDMAP-70; field faults B004, B005.
TEST_P(Faults, AsTheFirstFpdu) {
  for (const fault& f : faults()) {
    SCOPED_TRACE(testing::Message() << f.name << " " << to_hex(f.ulpdu));
    scripted_peer peer(role(), options());
    const regions memory(peer);
    peer.start();
    peer.chunk = chunk();
    peer.send(f.ulpdu);
    peer.expect_terminate(answer_to(f));
    check_the_end(peer, memory, f);
    if (HasFailure()) return;
  }
}

TEST_P(Faults, LaterWithWorkUnderWay) {
  for (const fault& f : faults()) {
    if (std::string_view(f.name).starts_with("Unsolicited")) continue;  // a Read is outstanding here
    SCOPED_TRACE(testing::Message() << f.name << " " << to_hex(f.ulpdu));
    scripted_peer peer(role(), options());
    const regions memory(peer);
    peer.open();
    peer.chunk = chunk();
    region& own = peer.side.user.add(2000);
    peer.side.read(own.element(0, 64), {stag{unknown}, 0});
    EXPECT_EQ(peer.take().size(), 1u);
    peer.side.send(own.element(0, 2000));
    octets stream = peer.drain(700);  // in the middle of an FPDU
    peer.send(f.ulpdu);
    stream = std::move(stream) + peer.drain();
    // RDMAP-44, RDMAP-67, VRB-08: each request completes once, none as a success that the wire does not carry.
    EXPECT_EQ(peer.side.user.sends, (std::vector{wr_status::flushed, wr_status::flushed}));
    // VRB-31: what is framed is finished, then comes the Terminate, and nothing behind it (RDMAP-43).
    const auto units = peer.splitter.split(stream);
    EXPECT_EQ(peer.splitter.rest(), 0u);
    ASSERT_FALSE(units.empty());
    EXPECT_EQ(to_hex(units.back()), to_hex(answer_to(f)));
    check_the_end(peer, memory, f);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Peers, Faults,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(std::numeric_limits<std::size_t>::max(), std::size_t{1})));

// The vectors of the specification work, octet by octet: CRC included.
TEST(TerminateVectors, NoBuffer) {  // E12; DDP-27
  rdmap::stream_options options;
  options.shortage = rdmap::receive_shortage::terminate;
  scripted_peer peer({}, options);
  peer.open();
  region& into = peer.side.user.add(64);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    peer.side.user.post_receive(into);
    peer.send(segment(untagged{.sequence = i}));
  }
  peer.send(segment(untagged{.sequence = 9}, pattern(10, 1)));
  EXPECT_EQ(to_hex(peer.drain()),
            to_hex(from_hex("002a4147 00000000 00000002 00000001 00000000 1202c000 001c4143 00000000 "
                            "00000000 00000009 00000000 df4564bc")));
}

TEST(TerminateVectors, InvalidStag) {
  scripted_peer peer;
  peer.open();
  peer.send(segment(tagged{.stag = 0xDEAD0000, .offset = 0x40}, pattern(100, 1)));
  EXPECT_EQ(to_hex(peer.drain()),
            to_hex(from_hex(
                "00264147 00000000 00000002 00000001 00000000 1100c000 0072c140 dead0000 00000000 00000040 bf50f7f1")));
}

TEST(TerminateVectors, InvalidSourceStag) {
  scripted_peer peer;
  peer.open();
  peer.send(read_request_segment(
      1, {.sink = 0xAABBCC01, .sink_offset = 0x1000, .size = 4096, .source = 0xBAD00000, .source_offset = 0x2000}));
  EXPECT_EQ(to_hex(peer.drain()),
            to_hex(from_hex(
                "00464147 00000000 00000002 00000001 00000000 0100e000 002e4141 00000000 00000001 00000001 00000000"
                "aabbcc01 00000000 00001000 00001000 bad00000 00000000 00002000 d8ba28eb")));
}

TEST(TerminateVectors, InsufficientIrd) {  // E4; MPA-93
  rdmap::stream_options options;
  options.startup.ird = 4;
  options.startup.max_ird = 4;
  options.reply_timeout = options.linger_timeout / 2;
  scripted_peer peer({.initiator = false, .ord = 5}, options);
  peer.begin();
  peer.feed(peer.own_frame());
  EXPECT_EQ(to_hex(peer.drain()), to_hex(from_hex("00164147 00000000 00000002 00000001 00000000 20060000 6540fb1b")));
  EXPECT_EQ(peer.side.engine.error(), mpa::errc::insufficient_ird);
  peer.side.poll();
  EXPECT_EQ(peer.side.events, (std::vector{stream_event::failed}));
  EXPECT_EQ(peer.side.engine.wants(), mpa::disposition::shutdown_write);
  // From here on the limit of the Terminate alone counts, not that of the Reply.
  peer.pass(options.linger_timeout - std::chrono::nanoseconds(1));
  EXPECT_EQ(peer.side.engine.state(), stream_state::terminating);
}

TEST(TerminateVectors, NoMatchingRtr) {  // E5; MPA-106
  for (const bool markers : {false, true}) {
    rdmap::stream_options options;
    options.startup.peer_to_peer = true;
    options.startup.rtr = {.write = true};
    scripted_peer peer(
        {.initiator = false, .markers = markers, .peer_to_peer = true, .rtr = {.send = true, .read = true}}, options);
    peer.begin();
    peer.feed(peer.own_frame());
    peer.expect_terminate(terminate_segment(0x20, 7));
    EXPECT_EQ(peer.side.engine.error(), mpa::errc::no_matching_rtr);
  }
}

// E6, E41; MPA-107: by the consumer's word.
TEST(OwnWord, TerminateCarriesItsCode) {
  const std::vector<std::tuple<std::error_code, std::uint8_t, std::uint8_t>> words{
      {{}, 0x00, 0x00},
      {make_error_code(rdmap::errc::local_catastrophic), 0x00, 0x00},
      {make_error_code(mpa::errc::local_catastrophic), 0x20, 0x05},
      {make_error_code(rdmap::errc::cq_overflow), 0x02, 0x07},          // E38
      {make_error_code(rdmap::errc::device_catastrophic), 0x02, 0x08},  // E39
      {std::make_error_code(std::errc::io_error), 0x00, 0x00}};
  for (const auto& [reason, layer_and_type, code] : words) {
    scripted_peer peer;
    peer.open();
    peer.side.engine.terminate(reason, peer.side.now);
    peer.expect_terminate(terminate_segment(layer_and_type, code));
    EXPECT_TRUE(peer.side.engine.error());
  }
}

TEST(OwnWord, BeforeFullOperationItIsAReset) {
  for (const bool initiator : {false, true}) {
    scripted_peer peer({.initiator = initiator});
    peer.begin();
    peer.side.engine.terminate(make_error_code(mpa::errc::local_catastrophic), peer.side.now);
    peer.expect_reset();
    peer.side.poll();
    EXPECT_EQ(peer.side.events, (std::vector{stream_event::failed, stream_event::closed}));
  }
}

// E16; RDMAP-23, SEC-12: as many Read Requests as IRD says, and not one more.
TEST(ReadQueue, OneBeyondIrd) {
  for (const std::uint16_t depth : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{16}}) {
    rdmap::stream_options options;
    options.startup.ird = depth;
    options.startup.max_ird = depth;
    scripted_peer peer({.ord = depth}, options);
    regions memory(peer);
    peer.open();
    octets request;
    for (std::uint32_t i = 1; i <= depth + 1u; ++i) {
      request = read_request_segment(i, {.sink = 7, .size = 4, .source = shared, .source_offset = base});
      peer.send(request);
    }
    peer.expect_terminate(terminate_segment(0x12, 2, request));
  }
}

TEST(ReadQueue, ASlotIsFreeOnceItsResponseIsTaken) {
  rdmap::stream_options options;
  options.startup.ird = options.startup.max_ird = 1;
  scripted_peer peer({.ord = 1}, options);
  regions memory(peer);
  peer.open();
  for (std::uint32_t i = 1; i <= 50; ++i) {
    peer.send(
        read_request_segment(i, {.sink = 7, .sink_offset = i, .size = 4, .source = shared, .source_offset = base}));
    const auto units = peer.take();
    ASSERT_EQ(units.size(), 1u);
    EXPECT_EQ(units[0], segment(tagged{.op = 2, .stag = 7, .offset = i}, octets(4)));  // RDMAP-18, RDMAP-19
  }
}

// E17: the queue pair does not allow remote reads at all.
TEST(ReadQueue, RemoteReadDisabled) {
  scripted_peer peer;
  peer.side.engine.bind(peer.side.user, peer.side.ring, {.remote_read = false});
  regions memory(peer);
  peer.open();
  const octets request = read_request_segment(1, {.sink = 7, .size = 4, .source = shared, .source_offset = base});
  peer.send(request);
  peer.expect_terminate(terminate_segment(0x12, 1, request));
}

// RDMAP-20, SEC-22: a Read of nothing is answered whatever its source is.
TEST(ReadQueue, NothingIsReadFromNowhere) {
  scripted_peer peer;
  peer.open();
  peer.send(read_request_segment(1, {.sink = 0xAABBCC01, .sink_offset = 0x10, .source = unknown, .source_offset = 1}));
  const auto units = peer.take();
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0], segment(tagged{.op = 2, .stag = 0xAABBCC01, .offset = 0x10}));
}

// RDMAP-47: the source goes away while it is being sent.
TEST(ReadQueue, SourceGoesAwayHalfway) {
  scripted_peer peer;
  region& lent = peer.side.user.add(std::size_t{1} << 20, {.remote_read = true}, shared, base);
  fill(lent.bytes(), 3);
  peer.open();
  const read_words asked{.sink = 7, .sink_offset = 0x100, .size = 1 << 20, .source = shared, .source_offset = base};
  peer.send(read_request_segment(1, asked));
  octets stream = peer.drain(600'000);  // a batch and part of the next
  lent.valid = false;
  peer.side.engine.detach(lent.bytes(), peer.side.now);
  const octets before = lent.copy();
  std::ranges::fill(lent.bytes(), std::byte{0xEE});  // its owner uses it for something else
  const octets tail = peer.drain();
  stream.insert(stream.end(), tail.begin(), tail.end());
  const auto units = peer.splitter.split(stream);
  std::uint64_t sent = 0;
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    const octets payload(units[i].begin() + 14, units[i].end());
    EXPECT_TRUE(payload == octets(before.begin() + static_cast<std::ptrdiff_t>(sent),
                                  before.begin() + static_cast<std::ptrdiff_t>(sent + payload.size())));
    sent += payload.size();
  }
  const octets rest = read_request_segment(1, {.sink = 7,
                                               .sink_offset = 0x100 + sent,
                                               .size = static_cast<std::uint32_t>(asked.size - sent),
                                               .source = shared,
                                               .source_offset = base + sent});
  EXPECT_EQ(to_hex(units.back()), to_hex(terminate_segment(0x01, 0, rest, true)));
}

// E24; RDMAP-28; field fault B002. The sink lies between guards.
struct bad_answer {
  const char* name;
  std::vector<octets> segments;
  std::uint8_t code;
};

constexpr std::uint32_t sink_key = 0x99000001;

octets response(std::uint64_t at, std::size_t n, bool last, std::uint32_t key = sink_key) {
  return segment(tagged{.op = 2, .stag = key, .offset = at, .last = last}, pattern(n, 9));
}

// Answers to a Read of 64 octets into `at`.
std::vector<bad_answer> bad_answers(std::uint64_t at) {
  return {{"OtherStag", {response(at, 64, true, sink_key + 1)}, 0},
          {"WritableStag", {response(at, 64, true, shared)}, 0},
          {"StartOfTheRegion", {response(at - 1000, 64, true)}, 1},
          {"BelowByOne", {response(at - 1, 64, true)}, 1},
          {"AboveByOne", {response(at + 1, 64, true)}, 1},
          {"LongerInOne", {response(at, 65, true)}, 1},
          {"LongerInMany", {response(at, 64, false), response(at + 64, 64, false)}, 1},
          {"MoreThanAskedWithoutEnd", {response(at, 64, false), response(at, 1, false)}, 1},
          {"LongerOverItself", {response(at, 64, false), response(at, 1, true)}, 1},
          {"ShorterByOne", {response(at, 63, true)}, 1},
          {"NothingAtAll", {response(at, 0, true)}, 1},
          {"HalfOnly", {response(at, 32, false), response(at + 32, 0, true)}, 1}};
}

TEST(ReadSink, AnswersThatDoNotMatch) {
  for (std::size_t i = 0; i < bad_answers(0).size(); ++i) {
    scripted_peer peer;
    region& whole = peer.side.user.add(4096, {}, sink_key);
    peer.side.user.add(64, {.remote_write = true}, shared, base);
    peer.open();
    std::ranges::fill(whole.bytes(), std::byte{0x5A});
    peer.side.read(whole.element(1000, 64), {stag{unknown}, 0});
    peer.side.read(whole.element(2000, 64), {stag{unknown}, 0});
    peer.take();
    const bad_answer answer = bad_answers(whole.base + 1000)[i];
    SCOPED_TRACE(answer.name);
    for (const octets& s : answer.segments) peer.send(s);
    peer.expect_terminate(terminate_segment(0x11, answer.code, answer.segments.back()));
    EXPECT_EQ(peer.side.user.sends, (std::vector{wr_status::bad_response, wr_status::flushed}));  // VRB-09
    const auto is_untouched = [](std::byte b) { return b == std::byte{0x5A}; };
    const auto in = whole.bytes();
    EXPECT_TRUE(std::all_of(in.begin(), in.begin() + 1000, is_untouched));
    EXPECT_TRUE(std::all_of(in.begin() + 1064, in.end(), is_untouched));
  }
}

// DDP-21: segments of a tagged message in any order.
TEST(ReadSink, SegmentsOutOfOrder) {
  scripted_peer peer;
  region& sink = peer.side.user.add(64, {}, 0x99000001);
  peer.open();
  peer.side.read(sink.element(0, 64), {stag{unknown}, 0});
  peer.take();
  const std::uint64_t at = sink.base;
  const octets data = pattern(64, 5);
  peer.send(
      segment(tagged{.op = 2, .stag = 0x99000001, .offset = at + 32, .last = false}, {data.begin() + 32, data.end()}));
  peer.send(segment(tagged{.op = 2, .stag = 0x99000001, .offset = at}, {data.begin(), data.begin() + 32}));
  EXPECT_EQ(peer.side.user.sends, std::vector{wr_status::success});
  EXPECT_EQ(sink.copy(), data);
}

// E36; VRB-35: the receive itself names memory that may not be written.
TEST(LocalFaults, ReceiveBuffer) {
  for (int kind = 0; kind < 3; ++kind) {
    scripted_peer peer;
    region& into = peer.side.user.add(64, {.local_write = kind != 0});
    rdmap::sge element = into.element(0, 64);
    if (kind == 1) element.key = stag{unknown};
    if (kind == 2) element.length = 65;
    peer.open();
    peer.side.user.post_receive({element});
    peer.send(segment(untagged{}, four));
    peer.expect_terminate(terminate_segment(0x00, 0));
    ASSERT_EQ(peer.side.user.receives.size(), 1u);
    EXPECT_EQ(peer.side.user.receives[0].result.status, wr_status::local_protection);
  }
}

// E37; RDMAP-61, VRB-17, VRB-35; field fault B034: a request that cannot be carried out.
TEST(LocalFaults, Requests) {
  for (int kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    rdmap::stream_options options;
    if (kind == 4) options.startup.ord = 0;
    scripted_peer peer({}, options);
    region& own = peer.side.user.add(64, {.local_write = kind != 3});
    peer.open();
    peer.side.write(own.element(0, 64), {stag{unknown}, 0});
    rdmap::sge element = own.element(0, 64);
    if (kind == 0) element.key = stag{unknown};
    if (kind == 1) element.length = 65;
    switch (kind) {
      case 0:
      case 1:
        peer.side.send(element);
        break;
      case 2:
        element.key = stag{unknown};
        peer.side.read(element, {stag{unknown}, 0});
        break;
      case 3:
      case 4:
        peer.side.read(element, {stag{unknown}, 0});
        break;
      default:
        peer.side.post({.op = rdmap::operation::local_invalidate, .invalidate = stag{unknown}}, {});
        break;
    }
    peer.side.send(own.element(0, 64));
    peer.expect_terminate(terminate_segment(0x00, 0));
    const wr_status expected = kind >= 4 ? wr_status::local_qp_operation : wr_status::local_protection;
    ASSERT_EQ(peer.side.user.sends.size(), 3u);
    EXPECT_EQ(peer.side.user.sends[1], expected);
    EXPECT_EQ(peer.side.user.sends[2], wr_status::flushed);
  }
}

}  // namespace
}  // namespace iwarp::stream_test
