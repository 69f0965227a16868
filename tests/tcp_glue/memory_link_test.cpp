#include "tcp_glue/memory_link.hpp"

#include "fake_engine.hpp"
#include "tcp_glue/pair_runner.hpp"

#include <gtest/gtest.h>

namespace iwarp::tcp_glue {
namespace {

using namespace std::chrono_literals;
using side = memory_link::side;
using state = transport::io_state;
using test::octets;
using test::pattern;

transport::io_result put(transport& t, const octets& data) {
  const gather_piece piece{data.data(), data.size()};
  return t.write({&piece, 1});
}

// Reads until a read says something other than ok; that goes to `last`.
octets get_all(transport& t, transport::io_result* last = nullptr, std::size_t most = 4096) {
  octets out;
  for (;;) {
    octets buffer(most);
    const auto r = t.read(buffer);
    if (last) *last = r;
    if (r.state != state::ok) return out;
    out.insert(out.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(r.size));
  }
}

struct recorder final : readiness_handler {
  void on_readable(std::error_code ec) noexcept override { readable.push_back(ec); }
  void on_writable(std::error_code ec) noexcept override { writable.push_back(ec); }
  std::vector<std::error_code> readable;
  std::vector<std::error_code> writable;
};

TEST(MemoryLink, CarriesGatheredOctetsBothWays) {
  memory_link link;
  const auto one = pattern(10);
  const auto two = pattern(20, 2);
  const gather_piece pieces[] = {{one.data(), 10}, {nullptr, 0}, {two.data(), 20}};
  EXPECT_EQ(link.a().write(pieces).size, 30U);
  auto want = one;
  want.insert(want.end(), two.begin(), two.end());
  transport::io_result last;
  EXPECT_EQ(get_all(link.b(), &last), want);
  EXPECT_EQ(last.state, state::would_block);
  put(link.b(), two);
  EXPECT_EQ(get_all(link.a()), two);
}

TEST(MemoryLink, ReadLimitCutsReads) {
  memory_link link;
  link.script_of(side::a).read_limit = 1;
  put(link.a(), pattern(3));
  octets buffer(10);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(link.b().read(buffer).size, 1U);
  EXPECT_EQ(link.b().read(buffer).state, state::would_block);

  std::vector<std::uint64_t> asked;
  link.script_of(side::a).read_limit_at = [&](std::uint64_t offset) {
    asked.push_back(offset);
    return offset == 3 ? 4 : 0;  // 0 counts as 1
  };
  put(link.a(), pattern(5));
  EXPECT_EQ(link.b().read(buffer).size, 4U);
  EXPECT_EQ(link.b().read(buffer).size, 1U);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{3, 7}));
}

TEST(MemoryLink, CapacityHoldsTheWriterBack) {
  memory_link link;
  link.script_of(side::a).capacity = 100;
  EXPECT_EQ(put(link.a(), pattern(60)).size, 60U);
  EXPECT_EQ(put(link.a(), pattern(60)).size, 40U);
  EXPECT_EQ(put(link.a(), pattern(60)).state, state::would_block);
  EXPECT_FALSE(link.writable(side::a));
  EXPECT_TRUE(link.writable(side::b));
  octets buffer(1);
  link.b().read(buffer);
  EXPECT_TRUE(link.writable(side::a));
  EXPECT_EQ(put(link.a(), pattern(60)).size, 1U);
}

TEST(MemoryLink, LatencyDelaysOctetsAndFin) {
  memory_link link;
  link.script_of(side::a).latency = 5ms;
  put(link.a(), pattern(8));
  link.advance_to(1ms);
  link.a().shutdown_write();
  EXPECT_FALSE(link.readable(side::b));
  EXPECT_EQ(link.next_arrival(), timestamp(5ms));
  link.advance_to(5ms);
  EXPECT_TRUE(link.readable(side::b));
  transport::io_result last;
  EXPECT_EQ(get_all(link.b(), &last), pattern(8));
  EXPECT_EQ(last.state, state::would_block);
  EXPECT_EQ(link.next_arrival(), timestamp(6ms));
  link.advance_to(6ms);
  EXPECT_TRUE(get_all(link.b(), &last).empty());
  EXPECT_EQ(last.state, state::end_of_stream);
  EXPECT_EQ(link.next_arrival(), never);
}

TEST(MemoryLink, LessLatencyDoesNotOvertake) {
  memory_link link;
  link.script_of(side::a).latency = 5ms;
  put(link.a(), pattern(4, 1));
  link.script_of(side::a).latency = 0ms;
  put(link.a(), pattern(4, 2));
  EXPECT_FALSE(link.readable(side::b));
  link.advance_to(5ms);
  auto want = pattern(4, 1);
  const auto more = pattern(4, 2);
  want.insert(want.end(), more.begin(), more.end());
  EXPECT_EQ(get_all(link.b()), want);
}

TEST(MemoryLink, CutAtEveryOffsetLosesBothSides) {
  for (std::uint64_t at = 0; at <= 16; ++at) {
    memory_link link;
    link.script_of(side::a).cut_at = at;
    const auto written = put(link.a(), pattern(16));
    EXPECT_EQ(written.state, at > 0 ? state::ok : state::failed);
    transport::io_result last;
    EXPECT_EQ(get_all(link.b(), &last).size(), at);
    EXPECT_EQ(last.state, state::failed);
    EXPECT_EQ(last.error, std::errc::connection_reset);
    EXPECT_TRUE(link.readable(side::a) && link.writable(side::a));
    EXPECT_EQ(put(link.a(), pattern(1)).state, state::failed);
    EXPECT_EQ(get_all(link.a(), &last).size(), 0U);
    EXPECT_EQ(last.error, std::errc::connection_reset);
  }
}

TEST(MemoryLink, EofAtEveryOffset) {
  for (std::uint64_t at = 0; at <= 16; ++at) {
    memory_link link;
    link.script_of(side::a).eof_at = at;
    link.script_of(side::a).capacity = 16;
    EXPECT_EQ(put(link.a(), pattern(16)).size, 16U);
    transport::io_result last;
    EXPECT_EQ(get_all(link.b(), &last).size(), at);
    EXPECT_EQ(last.state, state::end_of_stream);
    EXPECT_EQ(put(link.a(), pattern(16)).size, 16U) << "the sender does not notice";
    EXPECT_EQ(put(link.b(), pattern(16)).size, 16U) << "the other direction lives";
  }
}

TEST(MemoryLink, DamagesExactlyOneOctet) {
  const auto sent = pattern(64);
  for (std::uint64_t at = 0; at < sent.size(); ++at) {
    memory_link link;
    link.script_of(side::a).damages = {{.offset = at, .mask = std::byte{0x10}}};
    put(link.a(), {sent.begin(), sent.begin() + 20});
    put(link.a(), {sent.begin() + 20, sent.end()});
    auto want = sent;
    want[at] ^= std::byte{0x10};
    EXPECT_EQ(get_all(link.b()), want) << at;
  }
}

TEST(MemoryLink, FailsTheNthCall) {
  memory_link link;
  link.script_of(side::a).fail_write = 2;
  link.script_of(side::a).failure = std::make_error_code(std::errc::host_unreachable);
  EXPECT_EQ(put(link.a(), pattern(1)).state, state::ok);
  EXPECT_EQ(put(link.a(), pattern(1)).error, std::errc::host_unreachable);
  EXPECT_EQ(put(link.a(), pattern(1)).state, state::failed) << "a failed connection stays so";
  transport::io_result last;
  get_all(link.b(), &last);
  EXPECT_EQ(last.error, std::errc::connection_reset);

  memory_link other;
  other.script_of(side::b).fail_read = 1;
  put(other.a(), pattern(1));
  EXPECT_TRUE(get_all(other.b(), &last).empty());
  EXPECT_EQ(last.error, std::errc::connection_reset);
  EXPECT_EQ(put(other.a(), pattern(1)).state, state::failed);
}

TEST(MemoryLink, CloseWithUnreadOctetsResets) {
  memory_link link;
  put(link.a(), pattern(4));
  put(link.b(), pattern(4));
  link.b().close();
  transport::io_result last;
  EXPECT_EQ(get_all(link.a(), &last), pattern(4)) << "what had arrived stays readable";
  EXPECT_EQ(last.error, std::errc::connection_reset);
  EXPECT_EQ(link.b().local_endpoint(), fail(std::make_error_code(std::errc::bad_file_descriptor)));
}

TEST(MemoryLink, GracefulCloseDeliversThenEnds) {
  memory_link link;
  link.script_of(side::b).latency = 1ms;
  put(link.b(), pattern(4));
  link.b().close();
  link.advance_to(1ms);
  transport::io_result last;
  EXPECT_EQ(get_all(link.a(), &last), pattern(4));
  EXPECT_EQ(last.state, state::end_of_stream);
  EXPECT_EQ(put(link.a(), pattern(4)).state, state::ok) << "the first write is what provokes the reset";
  EXPECT_EQ(put(link.a(), pattern(4)).error, std::errc::connection_reset);
}

TEST(MemoryLink, AbortDropsWhatIsUnderWay) {
  memory_link link;
  link.script_of(side::b).latency = 1ms;
  put(link.b(), pattern(4));
  link.b().abort();
  link.advance_to(1ms);
  transport::io_result last;
  EXPECT_TRUE(get_all(link.a(), &last).empty());
  EXPECT_EQ(last.error, std::errc::connection_reset);
}

TEST(MemoryLink, WaitsAreOneShotAndCancelled) {
  memory_link link;
  const auto seen = std::make_shared<recorder>();
  link.b().wait_readable(seen);
  link.script_of(side::b).capacity = 1;
  put(link.b(), pattern(1));
  link.b().wait_writable(seen);
  EXPECT_EQ(link.run_handlers(), 0U);
  put(link.a(), pattern(1));
  EXPECT_TRUE(seen->readable.empty()) << "never inside the call";
  EXPECT_EQ(link.run_handlers(), 1U);
  EXPECT_EQ(seen->readable, std::vector<std::error_code>(1));
  EXPECT_EQ(link.run_handlers(), 0U) << "one-shot";
  link.b().cancel();
  EXPECT_TRUE(seen->writable.empty());
  EXPECT_EQ(link.run_handlers(), 1U);
  ASSERT_EQ(seen->writable.size(), 1U);
  EXPECT_EQ(seen->writable[0], std::errc::operation_canceled);
  get_all(link.b());
  link.b().wait_readable(seen);
  link.b().close();
  EXPECT_EQ(link.run_handlers(), 1U);
  EXPECT_EQ(seen->readable.back(), std::errc::operation_canceled);
}

TEST(PairRunner, MovesTimeForArrivalsAndDeadlines) {
  memory_link link;
  link.script_of(side::a).latency = 3ms;
  test::fake_engine a;
  test::fake_engine b;
  a.to_send = pattern(100000);
  b.deadline = 10ms;
  pair_runner pair(link, a, b);
  ASSERT_TRUE(pair.run_until_idle(100, 5ms));
  EXPECT_EQ(b.received, a.to_send);
  EXPECT_EQ(pair.now(), timestamp(3ms));
  EXPECT_EQ(b.deadlines, 0U) << "beyond the horizon";
  ASSERT_TRUE(pair.run_until_idle(100));
  EXPECT_EQ(b.deadlines, 1U);
  EXPECT_EQ(pair.now(), timestamp(10ms));
}

TEST(PairRunner, FindsAPairThatNeverRests) {
  memory_link link;
  test::fake_engine a;
  test::fake_engine b;
  a.echo = b.echo = true;
  a.to_send = pattern(1);
  pair_runner pair(link, a, b);
  EXPECT_EQ(pair.run_until_idle(50), std::nullopt);
}

TEST(PairRunner, StepHookKeepsItGoing) {
  memory_link link;
  test::fake_engine a;
  test::fake_engine b;
  pair_runner pair(link, a, b);
  int more = 5;
  pair.on_step = [&] {
    if (more == 0) return false;
    --more;
    a.to_send.push_back(std::byte{1});
    return true;
  };
  ASSERT_TRUE(pair.run_until_idle(50));
  EXPECT_EQ(b.received.size(), 5U);
}

}  // namespace
}  // namespace iwarp::tcp_glue
