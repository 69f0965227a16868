// The whole engine in siw's place: for each side of every recorded connection, an rdmap::stream is given what the other
// side sent and, when the recorded program posted something, the same request. It must accept every octet, place and
// deliver what siw placed and delivered, and send the very octets that siw sent.
#include "tests/captures/events.hpp"
#include "tests/captures/fixtures.hpp"
#include "tests/captures/replay_consumer.hpp"

#include "rdmap/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace iwarp::captures {
namespace {

using bytes = std::vector<std::byte>;

enum class feeding { fpdu_by_fpdu, octet_by_octet, many_at_once, receives_late };
std::string feeding_name(feeding how) {
  switch (how) {
    case feeding::fpdu_by_fpdu:
      return "fpdu_by_fpdu";
    case feeding::octet_by_octet:
      return "octet_by_octet";
    case feeding::many_at_once:
      return "many_at_once";
    case feeding::receives_late:
      return "receives_late";
  }
  return {};
}
void PrintTo(feeding how, std::ostream* out) { *out << feeding_name(how); }

enum class first_to_close { own, peer };

/// A message of RDMAP as the capture has it: its first segment's event, and the payload of all.
struct message {
  const fpdu_event* first;
  bytes payload;
};

class replay {
 public:
  replay(const capture::tcp_stream& stream, direction own, feeding how)
      : stream_(stream), events_(decode(stream)), own_(own), peer_(opposite(own)), how_(how) {
    collect_messages();
    lay_out_memory();
    ring_ = std::make_unique<rdmap::send_ring>(static_cast<std::uint32_t>(events_.events.size()), 1, 0);
    rdmap::stream_options options;
    const mpa::startup_frame recorded = frame_of(own_);
    options.startup.revision = recorded.header.revision;
    options.startup.crc = recorded.header.crc;
    options.startup.markers = recorded.header.markers;
    options.startup.ird = recorded.enhanced.value_or(mpa::enhanced_data{.ird = 16, .ord = 16}).ird;
    options.startup.ord = recorded.enhanced.value_or(mpa::enhanced_data{.ird = 16, .ord = 16}).ord;
    engine_ = std::make_unique<rdmap::stream>(options, consumer_, *ring_, rx_memory_, tx_pool_);
    // siw rounds the segment size down to a multiple of 8 (protocol.md 6.4): 1448 with IPv4, 1428 with IPv6.
    engine_->handle_emss(stream.client.ipv6 ? 1424 : 1448);
  }

  void run() {
    if (initiator()) {
      engine_->initiate(frame_of(own_).private_data(), now);
    } else {
      engine_->respond(now);
    }
    drain();
    for (const event& e : events_.events) {
      if (testing::Test::HasFailure()) return;
      SCOPED_TRACE(testing::Message() << "frame " << e.frame_index);
      if (e.dir == own_) {
        flush_joined();
        if (const auto* f = std::get_if<fpdu_event>(&e.what)) post(*f);
      } else {
        prepare(e);
        give(e);
      }
    }
    flush_joined();
  }

  void end(first_to_close closer) {
    if (closer == first_to_close::own) {
      engine_->close(now);
      drain();
      EXPECT_EQ(engine_->wants(), mpa::disposition::shutdown_write);
    }
    engine_->handle_eof(now);
    drain();
    EXPECT_EQ(engine_->wants(), mpa::disposition::close);
    EXPECT_EQ(engine_->state(), rdmap::stream_state::closed);
    EXPECT_FALSE(engine_->error()) << engine_->error().message();
    EXPECT_EQ(engine_->poll_event(), rdmap::stream_event::disconnected);
    EXPECT_EQ(engine_->poll_event(), rdmap::stream_event::closed);
    EXPECT_EQ(engine_->poll_event(), std::nullopt);
  }

  void expect_same_as_recorded() {
    EXPECT_FALSE(engine_->error()) << engine_->error().message();
    const bytes& recorded = stream_.half(own_).octets;
    const auto differs = std::mismatch(output_.begin(), output_.end(), recorded.begin(), recorded.end());
    EXPECT_EQ(output_.size(), recorded.size());
    EXPECT_TRUE(differs.first == output_.end()) << "first difference at octet " << differs.first - output_.begin();
    EXPECT_EQ(consumer_.sent, std::vector<rdmap::wr_status>(posted_, rdmap::wr_status::success));
    std::size_t sends = 0;
    std::size_t fpdus = 0;
    for (const event& e : events_.events) {
      const auto* f = std::get_if<fpdu_event>(&e.what);
      if (f == nullptr || e.dir != peer_) continue;
      ++fpdus;
      if (rdmap::is_send(f->op) && std::get<ddp::untagged_header>(f->header).last) ++sends;
    }
    EXPECT_EQ(consumer_.received.size(), sends);
    EXPECT_EQ(engine_->counters().fpdus_in, fpdus);
    EXPECT_EQ(engine_->counters().receive_holds, how_ == feeding::receives_late ? sends : 0);
    EXPECT_EQ(engine_->sent_terminate(), std::nullopt);
  }

  [[nodiscard]] bool initiator() const { return events_.from_initiator == own_; }

 private:
  static constexpr timestamp now{0};

  [[nodiscard]] mpa::startup_frame frame_of(direction d) const {
    for (const event& e : events_.events) {
      const auto* s = std::get_if<startup_event>(&e.what);
      if (s != nullptr && e.dir == d) return s->frame;
    }
    ADD_FAILURE() << "no start-up frame in this direction";
    return {};
  }

  static bool is_last(const fpdu_event& f) {
    return std::visit([](const auto& header) { return header.last; }, f.header);
  }

  void collect_messages() {
    for (const direction d : {direction::to_server, direction::to_client}) {
      bool open = false;
      for (const event& e : events_.events) {
        const auto* f = std::get_if<fpdu_event>(&e.what);
        if (f == nullptr || e.dir != d) continue;
        auto& list = messages_[static_cast<std::size_t>(d)];
        if (!open) list.push_back({f, {}});
        list.back().payload.insert(list.back().payload.end(), f->payload.begin(), f->payload.end());
        open = !is_last(*f);
      }
    }
    for (const message& m : messages_of(own_)) {
      if (m.first->op == rdmap::opcode::read_response) responses_.push_back(&m);
    }
  }
  [[nodiscard]] const std::deque<message>& messages_of(direction d) const {
    return messages_[static_cast<std::size_t>(d)];
  }

  // This side's memory: what the peer wrote, where its own Reads went, and what the peer read.
  void lay_out_memory() {
    for (const message& m : messages_of(peer_)) {
      if (const auto* t = std::get_if<ddp::tagged_header>(&m.first->header)) {
        consumer_.cover(t->stag, t->offset, m.payload.size());
      }
      if (m.first->request)
        consumer_.cover(m.first->request->source, m.first->request->source_offset, m.first->request->size);
    }
    for (const message& m : messages_of(own_)) {
      if (m.first->request)
        consumer_.cover(m.first->request->sink, m.first->request->sink_offset, m.first->request->size);
    }
  }

  /// Posts what the recorded program must have posted, at the first segment of the message. Read Responses are the
  /// engine's own affair.
  void post(const fpdu_event& f) {
    const auto& own = messages_of(own_);
    const auto m = std::find_if(own.begin(), own.end(), [&](const message& c) { return c.first == &f; });
    if (m == own.end() || f.op == rdmap::opcode::read_response) return;
    rdmap::work_request& request = (*ring_)[posted_];
    rdmap::sge& element = ring_->elements(posted_)[0];
    request = rdmap::work_request{};
    request.id = posted_;
    request.sge_count = 1;
    // The engine only reads what it sends.
    element = {.address = const_cast<std::byte*>(m->payload.data()),
               .length = static_cast<std::uint32_t>(m->payload.size()),
               .key = replay_consumer::own_key};
    if (f.op == rdmap::opcode::write) {
      const auto& header = std::get<ddp::tagged_header>(f.header);
      request.op = rdmap::operation::write;
      request.remote = header.stag;
      request.remote_offset = header.offset;
    } else if (f.op == rdmap::opcode::read_request) {
      ASSERT_TRUE(f.request);
      request.op = rdmap::operation::read;
      request.remote = f.request->source;
      request.remote_offset = f.request->source_offset;
      // The address that the recorded process had: it goes into SinkTO, and the consumer knows what is there.
      element = {.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(f.request->sink_offset)),
                 .length = f.request->size,
                 .key = f.request->sink};
    } else {
      ASSERT_TRUE(rdmap::is_send(f.op));
      request.op = f.op == rdmap::opcode::send_invalidate  ? rdmap::operation::send_invalidate
                   : f.op == rdmap::opcode::send_solicited ? rdmap::operation::send_solicited
                                                           : rdmap::operation::send;
      request.invalidate = std::get<ddp::untagged_header>(f.header).invalidate;
    }
    request.length = element.length;
    engine_->submit(++posted_, now);
    drain();
  }

  /// Before the peer's Read Request arrives the memory it asks for holds what the recorded response carried.
  void prepare(const event& e) {
    const auto* f = std::get_if<fpdu_event>(&e.what);
    if (f == nullptr || !f->request) return;
    ASSERT_FALSE(responses_.empty());
    const bytes& payload = responses_.front()->payload;
    responses_.pop_front();
    ASSERT_EQ(payload.size(), f->request->size);
    const mutable_bytes target = consumer_.memory(f->request->source, f->request->source_offset, payload.size());
    std::copy(payload.begin(), payload.end(), target.begin());
  }

  void give(const event& e) {
    const std::size_t startup = startup_size(peer_);
    const const_bytes all = stream_.half(peer_).octets;
    const auto* f = std::get_if<fpdu_event>(&e.what);
    if (f == nullptr) {
      feed(all.first(startup));
      started();
      return;
    }
    const const_bytes octets = all.subspan(startup + f->at, (2 + f->ulpdu_length + 3) / 4 * 4 + 4);
    joined_.insert(joined_.end(), octets.begin(), octets.end());
    joined_fpdus_.push_back(f);
    if (how_ != feeding::many_at_once) flush_joined();
  }
  void flush_joined() {
    const bytes octets = std::exchange(joined_, {});
    const auto fpdus = std::exchange(joined_fpdus_, {});
    if (!octets.empty()) feed(octets);
    for (const fpdu_event* f : fpdus) verify(*f);
  }

  void started() {
    if (!initiator()) {
      ASSERT_EQ(engine_->poll_event(), rdmap::stream_event::request);
      const mpa::enhanced_data reply = frame_of(own_).enhanced.value_or(mpa::enhanced_data{.ird = 16, .ord = 16});
      engine_->accept(frame_of(own_).private_data(), reply.ird, reply.ord, now);
      drain();
    }
    EXPECT_EQ(engine_->poll_event(), rdmap::stream_event::established);
    EXPECT_EQ(engine_->agreement().crc, events_.crc);
    EXPECT_EQ(engine_->agreement().revision, frame_of(own_).header.revision);
  }

  void feed(const_bytes octets) {
    if (how_ != feeding::receives_late) {
      while (receives_ < 64) {
        consumer_.post_receive();
        ++receives_;
      }
    }
    while (!octets.empty()) {
      mutable_bytes window = engine_->rx_window();
      if (window.empty() && engine_->held()) {
        consumer_.post_receive();
        engine_->receive_posted(now);
        drain();
        continue;
      }
      ASSERT_FALSE(window.empty()) << engine_->error().message();
      const std::size_t limit = how_ == feeding::octet_by_octet ? 1 : octets.size();
      const std::size_t n = std::min(window.size(), limit);
      std::copy_n(octets.begin(), n, window.begin());
      octets = octets.subspan(n);
      engine_->rx_commit(n, now);
      engine_->rx_park(now);
      ASSERT_FALSE(engine_->error()) << engine_->error().message();
      drain();
    }
    if (engine_->held()) {
      consumer_.post_receive();
      engine_->receive_posted(now);
      drain();
    }
  }

  /// What the peer's FPDU carried is where it belongs.
  void verify(const fpdu_event& f) {
    if (const auto* t = std::get_if<ddp::tagged_header>(&f.header)) {
      const mutable_bytes placed = consumer_.memory(t->stag, t->offset, f.payload.size());
      EXPECT_TRUE(std::equal(placed.begin(), placed.end(), f.payload.begin(), f.payload.end()));
    } else if (rdmap::is_send(f.op) && std::get<ddp::untagged_header>(f.header).last) {
      const auto& peers = messages_of(peer_);
      while (!rdmap::is_send(peers[peer_message_].first->op)) ++peer_message_;
      const std::size_t index = sends_verified_++;
      ASSERT_GT(consumer_.received.size(), index);
      EXPECT_EQ(consumer_.received[index].result.status, rdmap::wr_status::success);
      EXPECT_EQ(consumer_.received[index].result.op, f.op);
      EXPECT_EQ(consumer_.received[index].octets, peers[peer_message_++].payload);
    }
  }

  void drain() {
    for (;;) {
      const auto pieces = engine_->tx_window(now);
      if (pieces.empty()) return;
      std::size_t n = 0;
      for (const gather_piece& p : pieces) {
        const const_bytes octets = as_const_bytes(p.data, p.size);
        output_.insert(output_.end(), octets.begin(), octets.end());
        n += p.size;
      }
      engine_->tx_advance(n, now);
    }
  }

  [[nodiscard]] std::size_t startup_size(direction d) const {
    return mpa::startup_fixed_size + frame_of(d).header.private_data_length;
  }

  const capture::tcp_stream& stream_;
  const stream_events events_;
  const direction own_;
  const direction peer_;
  const feeding how_;
  std::array<std::deque<message>, 2> messages_;
  std::deque<const message*> responses_;  // this side's, not yet asked for
  mpa::rx_memory rx_memory_;
  mpa::tx_batch_pool tx_pool_;
  replay_consumer consumer_;
  std::unique_ptr<rdmap::send_ring> ring_;
  std::unique_ptr<rdmap::stream> engine_;
  bytes joined_;  // what the peer sent and the engine has not got yet
  std::vector<const fpdu_event*> joined_fpdus_;
  bytes output_;
  std::uint64_t posted_ = 0;
  std::size_t receives_ = 0;
  std::size_t peer_message_ = 0;
  std::size_t sends_verified_ = 0;
};

class EngineReplay : public testing::TestWithParam<std::tuple<fixture, feeding>> {
 protected:
  void replay_all(bool initiator) {
    const auto [f, how] = GetParam();
    std::size_t number = 0;
    for (const capture::tcp_stream& s : load(f)) {
      SCOPED_TRACE(testing::Message() << "connection " << ++number);
      for (const first_to_close closer : {first_to_close::own, first_to_close::peer}) {
        const direction from_initiator = decode(s).from_initiator;
        const auto r = std::make_unique<replay>(s, initiator ? from_initiator : opposite(from_initiator), how);
        ASSERT_EQ(r->initiator(), initiator);
        ASSERT_NO_FATAL_FAILURE(r->run());
        r->expect_same_as_recorded();
        r->end(closer);
      }
    }
  }
};

// MPA-41 MPA-49 MPA-64 MPA-80 MPA-87 RDMAP-10 RDMAP-19 RDMAP-25 RDMAP-31 RDMAP-32
TEST_P(EngineReplay, InTheRespondersPlaceSendsTheSameOctets) { replay_all(false); }

// Connections 4 and 5 of siw-rping: FPDUs right behind the Reply are taken (SIW-04).
// MPA-41 MPA-48 MPA-60 MPA-80 MPA-88 RDMAP-10 RDMAP-15 RDMAP-17 RDMAP-27 RDMAP-31 RDMAP-32
TEST_P(EngineReplay, InTheInitiatorsPlaceSendsTheSameOctets) { replay_all(true); }

std::vector<fixture> those_that_end_well() {
  std::vector<fixture> found;
  for (const fixture& f : fixtures)
    if (f.ends_well) found.push_back(f);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Siw, EngineReplay,
                         testing::Combine(testing::ValuesIn(those_that_end_well()),
                                          testing::Values(feeding::fpdu_by_fpdu, feeding::octet_by_octet,
                                                          feeding::many_at_once, feeding::receives_late)),
                         [](const auto& param) {
                           return test_name(std::get<0>(param.param)) + "_" + feeding_name(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace iwarp::captures
