// Real traffic through the receiving layers: the golden records, the counts, every way of cutting the octets, and what
// must hold among the messages of a connection.
#include "tests/captures/fixtures.hpp"

#include "tests/captures/events.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace iwarp::captures {
namespace {

using test_support::random_source;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::istringstream in(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Fixture : public testing::TestWithParam<fixture> {};

// A fixture that changes must change its note and its golden record with it.
TEST_P(Fixture, HasTheHashThatItsNoteStates) {
  const std::string octets = read_file(fixture_path(GetParam(), ".pcap"));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ASSERT_EQ(EVP_Digest(octets.data(), octets.size(), digest.data(), &size, EVP_sha256(), nullptr), 1);
  EXPECT_THAT(read_file(fixture_path(GetParam(), ".md")),
              testing::HasSubstr(test_support::to_hex(as_const_bytes(digest.data(), size))));
}

// MPA-07 MPA-10 MPA-11 MPA-13 MPA-14 MPA-28 MPA-34 MPA-42 MPA-46 MPA-48 MPA-49 MPA-56 MPA-84 MPA-85
// DDP-01 DDP-05 DDP-08 RDMAP-01
TEST_P(Fixture, GivesItsGoldenEvents) {
  const auto got = to_lines(load(GetParam()));
  const auto want = read_lines(fixture_path(GetParam(), ".events"));
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[i]) << "line " << i + 1;
}

TEST_P(Fixture, HasTheCountsThatWiresharkFound) {
  const auto streams = load(GetParam());
  EXPECT_EQ(streams.size(), GetParam().streams);
  std::map<rdmap::opcode, std::size_t> count;
  for (const capture::tcp_stream& s : streams) {
    for (const event& e : decode(s).events) {
      ASSERT_FALSE(std::holds_alternative<error_event>(e.what)) << std::get<error_event>(e.what).error.message();
      if (const auto* f = std::get_if<fpdu_event>(&e.what)) ++count[f->op];
    }
  }
  EXPECT_EQ(count[rdmap::opcode::write], GetParam().writes);
  EXPECT_EQ(count[rdmap::opcode::read_request], GetParam().read_requests);
  EXPECT_EQ(count[rdmap::opcode::read_response], GetParam().read_responses);
  EXPECT_EQ(count[rdmap::opcode::send], GetParam().sends);
  EXPECT_EQ(count[rdmap::opcode::send_solicited], GetParam().sends_solicited);
  EXPECT_EQ(count[rdmap::opcode::send_invalidate], GetParam().sends_invalidate);
  EXPECT_EQ(count[rdmap::opcode::terminate], GetParam().terminates);
  EXPECT_EQ(count.size(), 7u) << "of other operations there are none";
}

TEST_P(Fixture, IsWhole) {
  for (const capture::tcp_stream& s : load(GetParam())) {
    const stream_events events = decode(s);
    for (const direction d : {direction::to_server, direction::to_client}) {
      EXPECT_EQ(s.half(d).missing, 0u);
      EXPECT_EQ(s.half(d).closed, capture::closing::fin);
    }
    EXPECT_FALSE(events.to_server.mid_fpdu);
    EXPECT_FALSE(events.to_client.mid_fpdu);
  }
}

// MPA-41 MPA-44: how TCP cut the stream must not matter.
TEST_P(Fixture, CutAtRandomGivesTheSameEvents) {
  const auto streams = load(GetParam());
  const auto want = to_lines(streams);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_source random(seed);
    const std::size_t largest = std::array<std::size_t, 5>{2, 7, 100, 600, 1460}[seed % 5];
    ASSERT_EQ(to_lines(streams, [&](std::size_t left) { return 1 + random.below(std::min(left, largest)); }), want);
  }
}

// MPA-41 MPA-44
TEST_P(Fixture, OneOctetAtATimeGivesTheSameEvents) {
  const auto streams = load(GetParam());
  ASSERT_EQ(to_lines(streams, [](std::size_t) { return std::size_t{1}; }), to_lines(streams));
}

// MPA-41: many FPDUs and the start-up frame in one read. The frame numbers of the capture mean nothing then.
TEST_P(Fixture, AllOctetsAtOnceGiveTheSameFpdus) {
  for (const capture::tcp_stream& s : load(GetParam())) {
    capture::tcp_stream joined = s;
    joined.pieces.clear();
    for (const direction d : {direction::to_server, direction::to_client}) {
      joined.pieces.push_back({.dir = d, .begin = 0, .size = s.half(d).octets.size(), .frame_index = 0});
    }
    const stream_events got = decode(joined);
    const stream_events want = decode(s);
    for (const direction d : {direction::to_server, direction::to_client}) {
      const auto lines_of = [&](const stream_events& events) {
        stream_events one = events;
        std::erase_if(one.events, [&](const event& e) { return e.dir != d; });
        for (event& e : one.events) e.frame_index = 0;
        return to_lines(one, 1);
      };
      EXPECT_EQ(lines_of(got), lines_of(want));
    }
  }
}

/// The stream as it was when each direction had sent at most so many octets.
capture::tcp_stream cut_off(const capture::tcp_stream& s, std::size_t to_server, std::size_t to_client) {
  capture::tcp_stream part = s;
  for (capture::piece& p : part.pieces) {
    const std::size_t keep = p.dir == direction::to_server ? to_server : to_client;
    p.size = p.begin >= keep ? 0 : std::min(p.size, keep - p.begin);
  }
  std::erase_if(part.pieces, [](const capture::piece& p) { return p.size == 0; });
  return part;
}

// MPA-41: one cut, at every offset of the beginning of both directions.
TEST_P(Fixture, CutInTwoAnywhereGivesTheSameEvents) {
  for (const capture::tcp_stream& whole : load(GetParam())) {
    const capture::tcp_stream s = cut_off(whole, 1700, 1700);
    std::size_t octets = 0;
    for (const capture::piece& p : s.pieces) octets += p.size;
    ASSERT_GT(octets, 50u);
    const auto want = to_lines(decode(s), 1);
    for (std::size_t at = 1; at < octets; ++at) {
      std::size_t offered = 0;
      const auto cut = [&](std::size_t left) {
        const std::size_t n = offered < at && at < offered + left ? at - offered : left;
        offered += n;
        return n;
      };
      ASSERT_EQ(to_lines(decode(s, cut), 1), want) << "cut at " << at;
    }
  }
}

// A prefix of a stream gives the events of the FPDUs that are whole in it, and says that the last one is not.
// MPA-44
TEST_P(Fixture, CutOffAnywhereGivesOnlyWhatIsWhole) {
  for (const capture::tcp_stream& s : load(GetParam())) {
    const stream_events whole = decode(s);
    const direction d =
        s.to_server.octets.size() > s.to_client.octets.size() ? direction::to_server : direction::to_client;
    std::size_t startup = 0;
    for (const event& e : whole.events) {
      const auto* frame = std::get_if<startup_event>(&e.what);
      if (frame != nullptr && e.dir == d) startup = mpa::startup_fixed_size + frame->frame.header.private_data_length;
    }
    const std::size_t end = std::min<std::size_t>(s.half(d).octets.size(), startup + 1600);
    for (std::size_t keep = startup; keep < end; ++keep) {
      const bool forth = d == direction::to_server;
      const stream_events got = decode(cut_off(s, forth ? keep : SIZE_MAX, forth ? SIZE_MAX : keep));
      std::size_t want = 0;
      bool at_boundary = keep == startup;
      for (const event& e : whole.events) {
        const auto* f = std::get_if<fpdu_event>(&e.what);
        if (f == nullptr || e.dir != d) continue;
        const std::size_t behind = startup + f->at + (2 + f->ulpdu_length + 3) / 4 * 4 + 4;
        if (behind <= keep) ++want;
        at_boundary = at_boundary || behind == keep;
      }
      const stream_events::ending& ending = forth ? got.to_server : got.to_client;
      ASSERT_EQ(ending.fpdus, want) << "kept " << keep;
      ASSERT_EQ(ending.mid_fpdu, !at_boundary) << "kept " << keep;
    }
  }
}

// What siw keeps to, and this stack relies on towards it (protocol.md 6.4): one message at a time per direction.
// DDP-03 DDP-06 DDP-07 DDP-09 DDP-10 DDP-12 DDP-13 RDMAP-05 RDMAP-07 RDMAP-15 RDMAP-18 RDMAP-19 RDMAP-25
TEST_P(Fixture, HasMessagesThatFitTogether) {
  for (const capture::tcp_stream& s : load(GetParam())) {
    struct half {
      std::map<std::uint32_t, std::uint32_t> next_msn;  // by queue
      std::uint32_t untagged_at = 0;                    // octets of the untagged message in progress
      std::optional<ddp::tagged_header> tagged;         // where the next segment of the tagged message must continue
      std::deque<rdmap::read_request> asked;            // by this direction's sender
      std::uint64_t answered = 0;                       // octets of the response in progress to asked.front()
    };
    std::array<half, 2> halves;
    for (const event& e : decode(s).events) {
      const auto* f = std::get_if<fpdu_event>(&e.what);
      if (f == nullptr) continue;
      SCOPED_TRACE(testing::Message() << "frame " << e.frame_index << " offset " << f->at);
      half& own = halves[static_cast<std::size_t>(e.dir)];
      half& other = halves[static_cast<std::size_t>(opposite(e.dir))];
      if (const auto* u = std::get_if<ddp::untagged_header>(&f->header)) {
        EXPECT_FALSE(rdmap::info(f->op).tagged);
        EXPECT_EQ(u->queue, rdmap::info(f->op).queue);
        EXPECT_EQ(u->sequence.value, own.next_msn.try_emplace(u->queue, 1).first->second);
        EXPECT_EQ(u->offset, own.untagged_at);
        if (!rdmap::invalidates(f->op)) {
          EXPECT_EQ(u->invalidate, stag{});
        }
        own.untagged_at = u->last ? 0 : own.untagged_at + static_cast<std::uint32_t>(f->payload.size());
        if (u->last) ++own.next_msn[u->queue];
        if (f->op == rdmap::opcode::read_request) {
          EXPECT_EQ(f->ulpdu_length, ddp::untagged_header_size + rdmap::read_request_size);
          EXPECT_TRUE(u->last);
          ASSERT_TRUE(f->request);
          own.asked.push_back(*f->request);
        }
        continue;
      }
      const auto& t = std::get<ddp::tagged_header>(f->header);
      EXPECT_TRUE(rdmap::info(f->op).tagged);
      if (own.tagged) {
        EXPECT_EQ(t.stag, own.tagged->stag);
        EXPECT_EQ(t.offset, own.tagged->offset);
        EXPECT_EQ(t.ulp_control, own.tagged->ulp_control);
      }
      if (f->op == rdmap::opcode::read_response) {
        ASSERT_FALSE(other.asked.empty());
        const rdmap::read_request& asked = other.asked.front();
        EXPECT_EQ(t.stag, asked.sink);
        EXPECT_EQ(t.offset, asked.sink_offset + other.answered);
        other.answered += f->payload.size();
        if (t.last) {
          EXPECT_EQ(other.answered, asked.size);
          other.asked.pop_front();
          other.answered = 0;
        }
      }
      own.tagged.reset();
      if (!t.last) {
        own.tagged = t;
        own.tagged->offset += f->payload.size();
      }
    }
    for (const half& h : halves) {
      EXPECT_EQ(h.untagged_at, 0u);
      EXPECT_FALSE(h.tagged);
      EXPECT_TRUE(h.asked.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Siw, Fixture, testing::ValuesIn(fixtures),
                         [](const auto& param) { return test_name(param.param); });

TEST(Decoder, SaysWhatAStreamThatIsNotIwarpBeginsWith) {
  capture::tcp_stream s;
  const std::string text = "GET / HTTP/1.1\r\n";
  s.to_server.octets.resize(text.size());
  std::transform(text.begin(), text.end(), s.to_server.octets.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  s.pieces.push_back({.dir = direction::to_server, .begin = 0, .size = text.size(), .frame_index = 4});
  const auto events = decode(s).events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<error_event>(events[0].what));
}

// MPA-45: who opened TCP does not decide who is the MPA initiator.
TEST(Decoder, FindsTheRequestInEitherDirection) {
  capture::tcp_stream s = load(fixtures[0])[0];
  const auto want = decode(s);
  std::swap(s.to_server, s.to_client);
  for (capture::piece& p : s.pieces) p.dir = opposite(p.dir);
  const auto got = decode(s);
  EXPECT_EQ(want.from_initiator, direction::to_server);
  EXPECT_EQ(got.from_initiator, direction::to_client);
  EXPECT_EQ(got.to_client.fpdus, want.to_server.fpdus);
  EXPECT_EQ(got.to_server.fpdus, want.to_client.fpdus);
}

}  // namespace
}  // namespace iwarp::captures
