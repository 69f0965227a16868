// Memory regions: registration, rights, bounds, keys, invalidation, revocation while peers and own requests use them.
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <set>
#include <thread>

#include "tests/support/random.hpp"
#include "tests/verbs/support/raw_peer.hpp"
#include "tests/verbs/support/side.hpp"

namespace iwarp::verbs_test {
namespace {

using verbs::access;
using verbs::event_kind;
using verbs::opcode;
using verbs::status;

constexpr access everything = access::local_write | access::remote_write | access::remote_read;

// SEC-15, field faults B035, B127: memory that is not there, or may not be written, is refused.
TEST(VerbsMemory, RegistersOnlyWhatIsMappedAsWanted) {
  node n;
  guarded_memory m(3 * 4096 - 100);
  const auto why = [&](mutable_bytes memory, access rights) {
    const auto r = verbs::memory_region::create(n.pd, memory, rights);
    return r ? std::error_code{} : r.error();
  };
  EXPECT_EQ(why(m.bytes(), everything), std::error_code{});
  EXPECT_EQ(why(m.bytes(), access::remote_write), verbs::errc::invalid_access);
  EXPECT_EQ(why({m.data() - 1, 1}, everything), std::error_code{}) << "canaries are mapped";
  EXPECT_EQ(why({m.data(), m.size() + 1}, everything), verbs::errc::invalid_memory) << "an octet of the guard page";
  EXPECT_EQ(why({m.data() + m.size(), 1}, access::local_read), verbs::errc::invalid_memory);
  EXPECT_EQ(why(mutable_bytes(static_cast<std::byte*>(nullptr), 1), access::local_read), verbs::errc::invalid_memory);
  EXPECT_EQ(why({m.data(), ~std::size_t{0}}, access::local_read), verbs::errc::invalid_memory);
  EXPECT_EQ(why({m.data(), std::size_t{1} << 63}, access::local_read), verbs::errc::invalid_memory);
  EXPECT_EQ(why({}, everything), std::error_code{}) << "nothing is always there";
  m.make_read_only();
  EXPECT_EQ(why(m.bytes(), access::local_read | access::remote_read), std::error_code{});
  EXPECT_EQ(why(m.bytes(), everything), verbs::errc::invalid_memory);
  EXPECT_EQ(why(m.bytes(), access::local_write), verbs::errc::invalid_memory);
  EXPECT_TRUE(verbs::memory_region::create_read_only(n.pd, m.bytes(), access::remote_read));
  EXPECT_EQ(verbs::memory_region::create_read_only(n.pd, m.bytes(), access::local_write).error(),
            verbs::errc::invalid_access);
  m.forbid();
  EXPECT_EQ(why(m.bytes(), access::local_read), verbs::errc::invalid_memory);
  m.allow();
  // A hole in the middle.
  guarded_memory holed(3 * 4096);
  ::mprotect(holed.data() + 4096, 4096, PROT_NONE);
  EXPECT_EQ(why(holed.bytes(), access::local_read), verbs::errc::invalid_memory);
  ::mprotect(holed.data() + 4096, 4096, PROT_READ);
  EXPECT_EQ(why(holed.bytes(), access::local_write), verbs::errc::invalid_memory);
  EXPECT_EQ(why(holed.bytes(), access::local_read), std::error_code{});
}

// SEC-04, SEC-05, VRB-19: STags are spread over the whole space, in no order, and a freed one does not come back soon.
TEST(VerbsMemory, StagsAreHardToPredict) {
  node n;
  guarded_memory m(64);
  constexpr int count = 4096;
  std::vector<verbs::memory_region> regions;
  std::array<int, 32> ones{};
  std::set<std::uint32_t> indices;
  int rising = 0, near = 0;
  std::uint32_t before = 0;
  for (int i = 0; i < count; ++i) {
    regions.push_back(*verbs::memory_region::create(n.pd, m.bytes(), everything));
    const stag key = regions.back().key();
    EXPECT_NE(key.index(), 0u);
    EXPECT_TRUE(indices.insert(key.index()).second);
    for (std::size_t bit = 0; bit < ones.size(); ++bit) ones[bit] += static_cast<int>(key.value >> bit & 1);
    if (i > 0) {
      rising += key.value > before ? 1 : 0;
      near += key.index() - (before >> 8) + 1 < 1000 ? 1 : 0;
    }
    before = key.value;
  }
  // Six standard deviations of a fair coin: 32 * 6 = 192.
  for (const int n_ones : ones) EXPECT_NEAR(n_ones, count / 2, 192);
  EXPECT_NEAR(rising, count / 2, 192);
  EXPECT_LT(near, 20);
  // Freed and taken again: of 4096 fresh indices out of 2^24 about one would be an old one by chance.
  regions.clear();
  int reused = 0;
  std::set<std::uint32_t> again;
  for (int i = 0; i < count; ++i) {
    regions.push_back(*verbs::memory_region::create(n.pd, m.bytes(), everything));
    reused += indices.contains(regions.back().key().index()) ? 1 : 0;
  }
  EXPECT_LT(reused, 16);
}

// Field faults B020, B133: registering and deregistering for ever leaves the table as it was.
TEST(VerbsMemory, RegistrationsComeAndGo) {
  node n;
  guarded_memory m(64);
  std::vector<verbs::memory_region> kept;
  for (int i = 0; i < 300; ++i) kept.push_back(*verbs::memory_region::create(n.pd, m.bytes(), everything));
  for (int i = 0; i < 20000; ++i) {
    auto made = verbs::memory_region::create(n.pd, m.bytes(), everything);
    ASSERT_TRUE(made);
    kept[static_cast<std::size_t>(i) % kept.size()] = std::move(*made);
  }
  for (auto& k : kept) EXPECT_TRUE(k.valid());
}

// Remote accesses of a raw peer against one region, and the Terminate that each refusal brings.
struct remote_case {
  const char* name;
  access rights;
  bool write;       // else a Read
  std::int64_t at;  // octets behind the region's start
  std::uint32_t size;
  std::optional<rdmap::term_code> want;  // nothing: it succeeds
  std::uint32_t key_flip = 0;
  bool qp_read = true, qp_write = true;
  bool foreign_pd = false;
};

class VerbsRemoteAccess : public testing::TestWithParam<remote_case> {};

// SEC-01, -02, -03, -08, -22, VRB-20, -21, -22, RDMAP-14, -20, -21, -22, -62, -63, DDP errors E17..E29. The region is
// 1000 octets between guards.
TEST_P(VerbsRemoteAccess, IsAllowedOrRefusedToTheOctet) {
  const remote_case& c = GetParam();
  node n;
  side s(n, {.qp = {.remote_read = c.qp_read, .remote_write = c.qp_write}});
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local(), without_rtr()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);

  guarded_memory m(1000);
  fill(m.bytes(), 9);
  const auto other_pd = verbs::protection_domain::create(n.context);
  const auto region = *verbs::memory_region::create(c.foreign_pd ? other_pd : n.pd, m.bytes(), c.rights);
  verbs::remote_buffer target = region.remote();
  EXPECT_EQ(target.key, region.key());
  target.key.value ^= c.key_flip;
  target.offset += static_cast<std::uint64_t>(c.at);
  octets bad;
  if (c.write) {
    bad = tagged(rdmap::opcode::write, target.key, target.offset, pattern(c.size, 77));
  } else {
    bad = read_request(
        1,
        {.sink = stag{0x5500}, .sink_offset = 3, .size = c.size, .source = target.key, .source_offset = target.offset});
  }
  ASSERT_TRUE(peer.send_ulpdu(bad));
  if (!c.want) {
    // A zero-length Read answers when all before it is done.
    if (c.write) {
      ASSERT_TRUE(peer.send_ulpdu(read_request(1, {.sink = stag{0x5500}, .size = 0, .source = {}})));
      ASSERT_TRUE(peer.ulpdu());
      const auto at = static_cast<std::size_t>(c.at);
      if (c.size != 0) {
        EXPECT_TRUE(matches(m.bytes().subspan(at, c.size), 77));
      }
      std::vector<std::byte> untouched(1000);
      fill(untouched, 9);
      for (std::size_t i = 0; i < 1000; ++i) {
        if (c.size == 0 || i < at || i >= at + c.size) {
          ASSERT_EQ(m.data()[i], untouched[i]) << i;
        }
      }
    } else {
      octets got;
      while (got.size() < c.size || got.empty()) {
        const auto unit = peer.ulpdu();
        ASSERT_TRUE(unit);
        const auto header = *ddp::tagged_header::parse(*unit);
        EXPECT_EQ(header.stag, stag{0x5500});
        EXPECT_EQ(header.offset, 3 + got.size());
        got.insert(got.end(), unit->begin() + ddp::tagged_header_size, unit->end());
        if (header.last) break;
      }
      ASSERT_EQ(got.size(), c.size);
      if (c.size != 0) {
        EXPECT_TRUE(std::equal(got.begin(), got.end(), m.data() + c.at));
      }
    }
    EXPECT_EQ(s.qp.state(), verbs::qp_state::rts);
    return;
  }
  const auto t = peer.terminate();
  ASSERT_TRUE(t);
  EXPECT_EQ(t->code, *c.want) << rdmap::describe(t->code);
  // RDMAP-62, -63: length and headers of the segment in error.
  EXPECT_TRUE(t->segment_length_valid);
  EXPECT_EQ(t->segment_length, bad.size());
  EXPECT_EQ(t->ddp_header_size, c.write ? ddp::tagged_header_size : ddp::untagged_header_size);
  EXPECT_TRUE(
      std::equal(bad.begin(), bad.begin() + static_cast<std::ptrdiff_t>(t->ddp_header_size), t->ddp_header.begin()));
  EXPECT_EQ(t->request.has_value(), !c.write && c.want->layer == 0);
  EXPECT_EQ(peer.socket.wait_end(), raw_socket::ending::fin);
  peer.socket.fin();
  EXPECT_TRUE(matches(m.bytes(), 9));
  EXPECT_TRUE(m.intact());
  const auto e = s.expect(event_kind::disconnected);
  ASSERT_TRUE(e.sent_terminate);
  EXPECT_EQ(e.sent_terminate->code, *c.want);
  EXPECT_NE(e.reason_text.find(rdmap::describe(*c.want)), std::string::npos) << e.reason_text;
  EXPECT_TRUE(s.wait_state(verbs::qp_state::error));
}

using tc = rdmap::term_code;
constexpr access none = access::local_read;
constexpr access zero_everything = everything | access::zero_based;
INSTANTIATE_TEST_SUITE_P(
    TableE, VerbsRemoteAccess,
    testing::Values(
        remote_case{"WriteAll", everything, true, 0, 1000, {}}, remote_case{"WriteFirst", everything, true, 0, 1, {}},
        remote_case{"WriteLast", everything, true, 999, 1, {}},
        remote_case{"WriteZeroAnywhere", everything, true, 123456, 0, {}, 0xFFFFFFFF},
        remote_case{"WriteBelow", everything, true, -1, 1, tc{1, 1, 1}},
        remote_case{"WriteBelowAndInto", everything, true, -1, 2, tc{1, 1, 1}},
        remote_case{"WriteBehind", everything, true, 1000, 1, tc{1, 1, 1}},
        remote_case{"WriteOneTooMany", everything, true, 0, 1001, tc{1, 1, 1}},
        remote_case{"WriteAcrossTheEnd", everything, true, 999, 2, tc{1, 1, 1}},
        remote_case{"WriteZeroBased", zero_everything, true, 5, 995, {}},
        remote_case{"WriteZeroBasedBehind", zero_everything, true, 5, 996, tc{1, 1, 1}},
        remote_case{"WriteZeroBasedWraps", zero_everything, true, -1, 2, tc{1, 1, 3}},
        remote_case{"WriteWrongKey", everything, true, 0, 8, tc{1, 1, 0}, 1},
        remote_case{"WriteWrongKeyHigh", everything, true, 0, 8, tc{1, 1, 0}, 0x80},
        remote_case{"WriteWrongIndex", everything, true, 0, 8, tc{1, 1, 0}, 0x100},
        remote_case{"WriteReadOnlyForPeers", access::local_write | access::remote_read, true, 0, 8, tc{1, 1, 2}},
        remote_case{"WriteLocalOnly", access::local_write, true, 0, 8, tc{1, 1, 2}},
        remote_case{"WriteNotOnThisQp", everything, true, 0, 8, tc{1, 1, 2}, 0, true, false},
        remote_case{"WriteForeignPd", everything, true, 0, 8, tc{1, 1, 2}, 0, true, true, true},
        remote_case{"ReadAll", everything, false, 0, 1000, {}}, remote_case{"ReadLast", everything, false, 999, 1, {}},
        remote_case{"ReadZeroAnywhere", everything, false, 123456, 0, {}, 0xFFFFFFFF},
        remote_case{"ReadBelow", everything, false, -1, 1, tc{0, 1, 1}},
        remote_case{"ReadBehind", everything, false, 1000, 1, tc{0, 1, 1}},
        remote_case{"ReadOneTooMany", everything, false, 0, 1001, tc{0, 1, 1}},
        remote_case{"ReadHuge", everything, false, 0, ~0u, tc{0, 1, 1}},
        remote_case{"ReadZeroBased", zero_everything, false, 1, 999, {}},
        remote_case{"ReadZeroBasedWraps", zero_everything, false, -1, 2, tc{0, 1, 4}},
        remote_case{"ReadWrongKey", everything, false, 0, 8, tc{0, 1, 0}, 4},
        remote_case{"ReadWriteOnlyForPeers", access::local_write | access::remote_write, false, 0, 8, tc{0, 1, 2}},
        remote_case{"ReadNotAtAll", none, false, 0, 8, tc{0, 1, 2}},
        remote_case{"ReadNotOnThisQp", everything, false, 0, 8, tc{1, 2, 1}, 0, false, true},
        remote_case{"ReadForeignPd", everything, false, 0, 8, tc{0, 1, 3}, 0, true, true, true}),
    [](const auto& which) { return std::string(which.param.name); });

// STag 0 reaches nothing (VRB-19, SEC-08 of protocol.md 5).
TEST(VerbsMemory, StagZeroReachesNothing) {
  connected_pair pair;
  pair.client.write(1, 0, 8, {stag{0}, pair.server.region.remote().offset});
  const auto e = pair.client.expect(event_kind::disconnected);
  ASSERT_TRUE(e.received_terminate);
  EXPECT_EQ(e.received_terminate->code, (tc{1, 1, 0}));
}

// VRB-35, E37, field faults B034, B182: an element that names memory it may not use completes its request in error, and
// the connection ends with 0/0/00 on the wire.
TEST(VerbsLocalAccess, BadElementsCompleteInError) {
  struct local_case {
    const char* name;
    opcode op;
    verbs::sge (*element)(side&, const verbs::memory_region& readable, const verbs::memory_region& foreign);
    bool fails;
  };
  using r = const verbs::memory_region&;
  const std::array<local_case, 12> cases = {{
      {"send", opcode::send, [](side& s, r, r) { return s.region.element(0, 8); }, false},
      {"send zero", opcode::send,
       [](side&, r, r) {
         return verbs::sge{nullptr, 0, stag{7}};
       },
       false},
      {"send key 0", opcode::send,
       [](side& s, r, r) {
         return verbs::sge{s.memory.data(), 8, stag{0}};
       },
       true},
      {"send wrong key", opcode::send,
       [](side& s, r, r) {
         return verbs::sge{s.memory.data(), 8, stag{s.region.key().value ^ 1}};
       },
       true},
      {"send behind", opcode::send, [](side& s, r, r) { return s.region.element(s.memory.size(), 1); }, true},
      {"send across", opcode::send, [](side& s, r, r) { return s.region.element(s.memory.size() - 1, 2); }, true},
      {"send below", opcode::send,
       [](side& s, r, r) {
         return verbs::sge{s.memory.data() - 1, 2, s.region.key()};
       },
       true},
      {"send read-only memory", opcode::send, [](side&, r readable, r) { return readable.element(0, 8); }, false},
      {"send foreign domain", opcode::send, [](side&, r, r foreign) { return foreign.element(0, 8); }, true},
      {"read into read-only", opcode::rdma_read, [](side&, r readable, r) { return readable.element(0, 8); }, true},
      {"read into foreign", opcode::rdma_read, [](side&, r, r foreign) { return foreign.element(0, 8); }, true},
      {"read across", opcode::rdma_read, [](side& s, r, r) { return s.region.element(s.memory.size() - 1, 2); }, true},
  }};
  for (const local_case& c : cases) {
    SCOPED_TRACE(c.name);
    connected_pair pair;
    side& client = pair.client;
    guarded_memory m(64);
    const auto readable = *verbs::memory_region::create(client.home.pd, m.bytes(), access::local_read);
    const auto other = verbs::protection_domain::create(client.home.context);
    const auto foreign = *verbs::memory_region::create(other, m.bytes(), everything);
    pair.server.receive(1, 0, 100);
    const verbs::sge element = c.element(client, readable, foreign);
    client.send(1, {.op = c.op, .elements = {&element, 1}, .remote = pair.server.region.remote()});
    client.send(2, 0, 8);
    client.expect(1, c.fails ? status::local_protection : status::success);
    if (!c.fails) continue;
    client.expect(2, status::flushed);
    const auto here = client.expect(event_kind::disconnected);
    ASSERT_TRUE(here.sent_terminate);
    EXPECT_EQ(here.sent_terminate->code, (tc{0, 0, 0}));
    EXPECT_FALSE(here.sent_terminate->segment_length_valid);
    EXPECT_EQ(here.sent_terminate->ddp_header_size, 0u);
    const auto there = pair.server.expect(event_kind::disconnected);
    ASSERT_TRUE(there.received_terminate);
    EXPECT_EQ(there.received_terminate->code, (tc{0, 0, 0}));
    EXPECT_TRUE(pair.server.settle());
  }
}

// E36, VRB-35: likewise the elements of a receive, when a message comes for it.
TEST(VerbsLocalAccess, BadReceivesCompleteInError) {
  connected_pair pair;
  side& server = pair.server;
  guarded_memory m(64);
  const auto readable = *verbs::memory_region::create(server.home.pd, m.bytes(), access::local_read);
  const std::array<verbs::sge, 2> elements = {server.region.element(0, 8), readable.element(0, 8)};
  server.ledger.received(1);
  ASSERT_TRUE(server.qp.post_receive({.id = 1, .elements = elements}));
  server.receive(2, 0, 8);
  fill(server.memory.bytes(), 1);
  pair.client.send(1, 0, 4);
  server.expect(1, status::local_protection);
  server.expect(2, status::flushed);
  EXPECT_TRUE(matches(server.memory.bytes(), 1));
  EXPECT_EQ(pair.client.expect(event_kind::disconnected).received_terminate->code, (tc{0, 0, 0}));
}

// VRB-34, E15, RDMAP-33, field fault B056: exactly full works; one octet more is a length error on one side, an invalid
// request on the other.
TEST(VerbsLocalAccess, AMessageTooLongForItsReceive) {
  connected_pair pair;
  pair.server.receive(1, 0, 100);
  pair.server.receive(2, 0, 100);
  pair.server.receive(3, 0, 100);
  pair.client.send(1, 0, 100);
  pair.server.expect(1);
  std::ranges::fill(pair.server.memory.bytes(), std::byte{0});
  pair.client.send(2, 0, 101);
  pair.server.expect(2, status::local_length);
  pair.server.expect(3, status::flushed);
  EXPECT_TRUE(all_are(pair.server.memory.bytes(), std::byte{0}));
  const auto e = pair.client.expect(event_kind::disconnected);
  ASSERT_TRUE(e.received_terminate);
  EXPECT_EQ(e.received_terminate->code, (tc{1, 2, 5}));
  EXPECT_EQ(e.reason, rdmap::errc::terminated_by_peer);
}

// Invalidation ------------------------------------------------------------------------------------------------------

// VRB-16, VRB-23, field fault B047: a local invalidate takes effect before later requests; again succeeds; revalidated
// memory has a new key, and the old one stays refused.
TEST(VerbsInvalidate, LocalTakesEffectBeforeLaterRequests) {
  connected_pair pair;
  side& client = pair.client;
  guarded_memory m(100);
  auto region = *verbs::memory_region::create(client.home.pd, m.bytes(), everything);
  const stag old = region.key();
  EXPECT_EQ(region.revalidate().error(), verbs::errc::wrong_state);
  const verbs::sge element = region.element(0, 10);
  pair.server.receive(1, 0, 100);
  client.send(1, {.elements = {&element, 1}});
  client.send(2, {.op = opcode::local_invalidate, .invalidate = old});
  client.send(3, {.op = opcode::local_invalidate, .invalidate = old});
  for (std::uint64_t i = 1; i < 4; ++i) client.expect(i);
  EXPECT_FALSE(region.valid());
  const auto fresh = region.revalidate();
  ASSERT_TRUE(fresh);
  EXPECT_TRUE(region.valid());
  EXPECT_EQ(fresh->index(), old.index());
  EXPECT_NE(fresh->key(), old.key());
  EXPECT_EQ(region.key(), *fresh);
  EXPECT_EQ(region.element(0, 1).key, *fresh);
  client.write(4, 0, 8, pair.server.region.remote());
  client.expect(4);
  pair.server.expect(1);
  // The peer still has the old key.
  pair.server.read(5, 0, 10, {old, region.remote().offset});
  pair.server.expect(5, status::remote_access);
  EXPECT_EQ(client.expect(event_kind::disconnected).sent_terminate->code, (tc{0, 1, 0}));
}

TEST(VerbsInvalidate, InvalidMemoryIsOfNoUseToOwnRequests) {
  connected_pair pair;
  const verbs::sge element = pair.client.region.element(0, 10);
  pair.server.receive(1, 0, 100);
  pair.client.send(1, {.op = opcode::local_invalidate, .invalidate = pair.client.region.key()});
  pair.client.send(2, {.elements = {&element, 1}});
  pair.client.expect(1);
  pair.client.expect(2, status::local_protection);
}

// VRB-23, E37: what cannot be invalidated locally.
TEST(VerbsInvalidate, LocalRefusals) {
  for (int which = 0; which < 4; ++which) {
    SCOPED_TRACE(which);
    connected_pair pair;
    guarded_memory m(10);
    const auto other = verbs::protection_domain::create(pair.client.home.context);
    const auto foreign = *verbs::memory_region::create(other, m.bytes(), everything);
    const std::array<stag, 4> bad = {stag{0}, stag{0x4200}, foreign.key(), stag{pair.client.region.key().value ^ 2}};
    pair.client.send(1, {.op = opcode::local_invalidate, .invalidate = bad[static_cast<std::size_t>(which)]});
    pair.client.expect(1, status::local_qp_operation);
    EXPECT_EQ(pair.client.expect(event_kind::disconnected).sent_terminate->code, (tc{0, 0, 0}));
    EXPECT_TRUE(foreign.valid());
    EXPECT_TRUE(pair.client.region.valid());
  }
}

// RDMAP-36, RDMAP-38, VRB-23: a peer's invalidate: done before the receive completes, and final.
TEST(VerbsInvalidate, RemoteIsDoneBeforeTheReceiveCompletes) {
  for (const bool solicited : {false, true}) {
    connected_pair pair;
    side& server = pair.server;
    guarded_memory m(100);
    auto region = *verbs::memory_region::create(server.home.pd, m.bytes(), everything);
    server.receive(1, 0, 100);
    server.receive(2, 0, 100);
    const verbs::sge element = pair.client.region.element(0, 10);
    for (std::uint64_t i = 1; i < 3; ++i) {  // an invalid one may be invalidated again
      pair.client.send(i, {.op = opcode::send_with_invalidate,
                           .solicited = solicited,
                           .elements = {&element, 1},
                           .invalidate = region.key()});
    }
    for (std::uint64_t i = 1; i < 3; ++i) {
      const auto c = server.completion();
      EXPECT_EQ(c.status, status::success);
      EXPECT_EQ(c.solicited, solicited);
      EXPECT_TRUE(c.with_invalidate);
      EXPECT_EQ(c.invalidated, region.key());
      EXPECT_EQ(c.length, 10u);
      EXPECT_FALSE(region.valid());
    }
    pair.client.write(3, 0, 10, region.remote());
    EXPECT_EQ(pair.client.expect(event_kind::disconnected).received_terminate->code, (tc{1, 1, 0}));
    EXPECT_TRUE(all_are(m.bytes(), std::byte{0}));
  }
}

// RDMAP-37, E31..E34, VRB-23: what a peer may not invalidate.
TEST(VerbsInvalidate, RemoteRefusals) {
  struct refusal {
    const char* name;
    access rights;
    std::uint32_t flip;
    bool foreign, zero, qp;
    tc want;
  };
  const std::array<refusal, 7> cases = {{
      {"unknown", everything, 0x4000, false, false, true, {0, 1, 0}},
      {"key", everything, 1, false, false, true, {0, 1, 0}},
      {"no remote right", access::local_write, 0, false, false, true, {0, 1, 2}},
      {"only the right that the queue pair does not grant", access::remote_read, 0, false, false, false, {0, 1, 2}},
      {"other protection domain", everything, 0, true, false, true, {0, 1, 3}},
      {"zero", everything, 0, false, true, true, {0, 1, 9}},
      {"zero, and no right", everything, 0, false, true, false, {0, 1, 9}},
  }};
  for (const refusal& c : cases) {
    SCOPED_TRACE(c.name);
    pair_options options;
    options.server.qp = {.remote_read = c.qp};
    connected_pair pair(options);
    side& server = pair.server;
    guarded_memory m(100);
    const auto other = verbs::protection_domain::create(server.home.context);
    const auto region = *verbs::memory_region::create(c.foreign ? other : server.home.pd, m.bytes(), c.rights);
    server.receive(1, 0, 100);
    pair.client.send(
        1, {.op = opcode::send_with_invalidate, .invalidate = c.zero ? stag{0} : stag{region.key().value ^ c.flip}});
    server.expect(1, status::remote_invalid_request);
    EXPECT_TRUE(region.valid());
    const auto e = pair.client.expect(event_kind::disconnected);
    ASSERT_TRUE(e.received_terminate);
    EXPECT_EQ(e.received_terminate->code, c.want) << rdmap::describe(e.received_terminate->code);
  }
}

// SEC-07: octets of a Read Response that TCP has not taken yet are not read from memory that was invalidated, or
// deregistered, meanwhile: the memory is taken away, and the peer gets what was there.
class VerbsRevokeQueued : public testing::TestWithParam<std::tuple<int, unsigned>> {};
INSTANTIATE_TEST_SUITE_P(Ways, VerbsRevokeQueued, testing::Combine(testing::Range(0, 3), testing::Values(1u, 2u)));

TEST_P(VerbsRevokeQueued, QueuedOctetsLeaveTheMemoryFirst) {
  const auto [way, domains] = GetParam();
  constexpr std::uint32_t size = 24 << 20;  // more than the socket buffers of loopback take
  node n({.domains = domains});
  side s(n);       // whom the slow peer reads from
  side beside(n);  // another connection, of the other domain when there are two
  guarded_memory m(size);
  fill(m.bytes(), 5);
  std::optional<verbs::memory_region> region(*verbs::memory_region::create(n.pd, m.bytes(), everything));
  raw_listener listener;
  ASSERT_TRUE(s.qp.connect(listener.local(), without_rtr()));
  raw_peer peer(listener.accept());
  ASSERT_TRUE(peer.accept());
  s.expect(event_kind::established);
  ASSERT_TRUE(beside.qp.connect(listener.local(), without_rtr()));
  raw_peer second(listener.accept());
  ASSERT_TRUE(second.accept());
  beside.expect(event_kind::established);

  const stag key = region->key();
  const auto offset = region->remote().offset;
  ASSERT_TRUE(
      peer.send_ulpdu(read_request(1, {.sink = stag{0x100}, .size = size, .source = key, .source_offset = offset})));
  // Until TCP is full: nothing more goes out.
  std::uint64_t sent = 0;
  ASSERT_TRUE(wait_until([&] {
    const auto now = s.qp.counters().octets_out;
    return now > (1 << 20) && std::exchange(sent, now) == now;
  }));
  s.receive(7, 0, 10);
  beside.receive(7, 0, 10);
  switch (way) {
    case 0:  // by the owner, through the other connection
      beside.send(1, {.op = opcode::local_invalidate, .invalidate = key});
      beside.expect(1);
      break;
    case 1:  // by a peer, through the same connection, behind the Read Request
      ASSERT_TRUE(second.send_ulpdu(untagged(rdmap::opcode::send_invalidate, 1, {}, 0, true, key)));
      beside.expect(7);
      break;
    case 2:
      region.reset();
      break;
  }
  m.forbid();
  // What the peer gets is what was there; at the latest the next segment finds the STag invalid.
  std::size_t got = 0;
  std::optional<rdmap::terminate_message> end;
  std::vector<std::byte> want(size);
  fill(want, 5);
  while (const auto unit = peer.ulpdu()) {
    if (!ddp::is_tagged(unit->front())) {
      end = *rdmap::terminate_message::parse(std::span(*unit).subspan(ddp::untagged_header_size));
      break;
    }
    const const_bytes payload = std::span(*unit).subspan(ddp::tagged_header_size);
    ASSERT_LE(got + payload.size(), size);
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), want.begin() + static_cast<std::ptrdiff_t>(got)));
    got += payload.size();
  }
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, (tc{0, 1, 0}));
  // RDMAP-47: advanced by what was sent.
  ASSERT_TRUE(end->request);
  EXPECT_EQ(end->request->source_offset, offset + got);
  EXPECT_EQ(end->request->size, size - got);
  EXPECT_GE(got, sent - sent / 100);
  m.allow();
}

// Field fault B073: a Send completes when its memory is the owner's again.
TEST(VerbsRevoke, ASendCompletesWhenItsMemoryIsFree) {
  connected_pair pair;
  for (std::uint64_t i = 0; i < 200; ++i) {
    fill(pair.client.memory.bytes().first(60000), i);
    pair.server.receive(i, 0, 60000);
    pair.client.send(i, 0, 60000);
    pair.client.expect(i);
    pair.client.memory.forbid();
    pair.server.expect(i);
    pair.client.memory.allow();
    ASSERT_TRUE(matches(pair.server.memory.bytes().first(60000), i));
  }
}

// Deregistered while Sends are queued from it, none of which was begun: they complete with a protection error or were
// done before; the memory is never read again.
TEST(VerbsRevoke, DeregisteredUnderQueuedSends) {
  pair_options options;
  options.server.memory = 1 << 20;
  connected_pair pair(options);
  side& client = pair.client;
  guarded_memory m(1 << 20);
  std::optional<verbs::memory_region> region(*verbs::memory_region::create(client.home.pd, m.bytes(), everything));
  const verbs::sge element = region->element();
  // The server posts nothing: TCP fills up, the rest stays queued.
  for (std::uint64_t i = 0; i < 30; ++i) client.send(i, {.elements = {&element, 1}});
  region.reset();
  m.forbid();
  for (std::uint64_t i = 0; i < 30; ++i) pair.server.receive(i, 0, 1 << 20);
  ASSERT_TRUE(client.settle());
  EXPECT_EQ(client.ledger.failures(), 1u);
  client.expect(event_kind::disconnected);
  m.allow();
}

// SEC-07, RDMAP-38: peers write to and read from regions at full speed while they come and go, in several domains and
// threads: when the destructor has returned, the memory can be taken away.
TEST(VerbsRevoke, NothingTouchesMemoryAfterDeregistration) {
  for (const unsigned domains : {1u, 3u}) {
    constexpr int peers = 3;
    pair_options options{.how = {.domains = domains}};
    std::vector<std::unique_ptr<connected_pair>> pairs;
    node owner({.domains = domains});
    guarded_memory shared(1 << 20);
    struct attack {
      std::unique_ptr<side> target;
      std::unique_ptr<node> home;
      std::unique_ptr<side> source;
    };
    auto listening = *verbs::event_channel::create(owner.context);
    auto listener = *verbs::listener::create(listening, setup{}.loopback());
    std::vector<attack> attacks;
    for (int i = 0; i < peers; ++i) {
      attack a;
      a.home = std::make_unique<node>();
      a.target = std::make_unique<side>(owner, side_options{.memory = 4096});
      a.source = std::make_unique<side>(*a.home);
      attacks.push_back(std::move(a));
    }
    for (int round = 0; round < 25; ++round) {
      SCOPED_TRACE(testing::Message() << domains << " domains, round " << round);
      auto region = std::make_optional(*verbs::memory_region::create(owner.pd, shared.bytes(), everything));
      const auto where = region->remote();
      for (attack& a : attacks) {
        ASSERT_TRUE(a.source->qp.connect(listener.local()));
        const auto request = next_event(listening);
        ASSERT_TRUE(a.target->qp.accept(request.request));
        a.source->expect(event_kind::established);
        a.target->expect(event_kind::established);
      }
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < attacks.size(); ++i) {
        threads.emplace_back([&, i] {
          side& s = *attacks[i].source;
          const verbs::sge element = s.region.element(0, 200'000);
          std::array<verbs::completion, 8> out;
          // Each has its part: what two domains do to the same octets at once is nobody's business but the user's.
          const verbs::remote_buffer part{where.key, where.offset + i * 300'000};
          const auto end = std::chrono::steady_clock::now() + patience;
          for (std::size_t k = i; s.qp.state() == verbs::qp_state::rts && std::chrono::steady_clock::now() < end; ++k) {
            (void)s.qp.post_send(
                {.op = k % 2 == 0 ? opcode::rdma_write : opcode::rdma_read, .elements = {&element, 1}, .remote = part});
            while (s.cq.poll(out) != 0) {
            }
          }
        });
      }
      const auto busy = [&] {
        std::uint64_t sum = 0;
        for (attack& a : attacks) sum += a.target->qp.counters().octets_in;
        return sum;
      };
      EXPECT_TRUE(wait_until([&] { return busy() > 1'000'000; }));
      region.reset();
      shared.forbid();
      for (std::thread& t : threads) t.join();
      shared.allow();
      for (attack& a : attacks) {
        a.source->expect(event_kind::disconnected);
        const auto e = a.target->expect(event_kind::disconnected);
        EXPECT_TRUE(e.sent_terminate) << e.reason_text;
        for (side* s : {a.source.get(), a.target.get()}) {
          while (!poll_poisoned(s->cq).empty()) {
          }
          ASSERT_TRUE(wait_until([&] { return s->qp.reset().has_value(); }));
          while (!poll_poisoned(s->cq).empty()) {
          }
        }
      }
    }
  }
}

// Field fault B047: invalidate and revalidate under fire; the old key is never accepted again.
TEST(VerbsRevoke, TheOldKeyIsRefusedHoweverFastTheNewOneComes) {
  node owner({.domains = 2});
  guarded_memory m(4096);
  auto region = *verbs::memory_region::create(owner.pd, m.bytes(), everything);
  side control(owner, {.memory = 64});
  auto listening = *verbs::event_channel::create(owner.context);
  auto listener = *verbs::listener::create(listening, setup{}.loopback());
  raw_listener raw;
  ASSERT_TRUE(control.qp.connect(raw.local(), without_rtr()));
  raw_peer idle(raw.accept());
  ASSERT_TRUE(idle.accept());
  control.expect(event_kind::established);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    side target(owner, {.memory = 64});
    raw_peer peer = raw_peer::connect(listener.local());
    peer.send_request();
    const auto request = next_event(listening);
    ASSERT_TRUE(target.qp.accept(request.request));
    ASSERT_TRUE(peer.start_up_frame(mpa::frame_kind::reply));
    target.expect(event_kind::established);
    const auto where = region.remote();
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      const octets unit = fpdu(tagged(rdmap::opcode::write, where.key, where.offset, pattern(4096, 1)));
      while (!stop.load() && peer.socket.send(unit)) {
      }
    });
    ASSERT_TRUE(wait_until([&] { return target.qp.counters().fpdus_in > 20; }));
    control.send(1, {.op = opcode::local_invalidate, .invalidate = where.key});
    control.expect(1);
    ASSERT_TRUE(region.revalidate());
    std::ranges::fill(m.bytes(), std::byte{0});
    const auto e = target.expect(event_kind::disconnected);  // the next Write is refused
    ASSERT_TRUE(e.sent_terminate);
    EXPECT_EQ(e.sent_terminate->code, (tc{1, 1, 0}));
    stop.store(true);
    writer.join();
    EXPECT_TRUE(all_are(m.bytes(), std::byte{0}));
  }
}

// Registering grows the table of STags while engines read it.
TEST(VerbsRevoke, TheTableGrowsUnderTraffic) {
  pair_options options{.how = {.domains = 2}};
  connected_pair pair(options);
  connected_pair second(options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      guarded_memory m(64);
      std::vector<verbs::memory_region> kept;
      while (!stop.load()) {
        for (int i = 0; i < 700; ++i) {
          kept.push_back(*verbs::memory_region::create(pair.server_node.pd, m.bytes(), everything));
        }
        kept.clear();
      }
    });
  }
  for (std::uint64_t i = 0; i < 3000; ++i) {
    pair.client.write(i, 0, 64, pair.server.region.remote());
    pair.client.expect(i);
  }
  stop.store(true);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(pair.server.qp.state(), verbs::qp_state::rts);
}

}  // namespace
}  // namespace iwarp::verbs_test
