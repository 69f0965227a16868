// The data path does not allocate: after a warm-up, Sends, Writes and Reads both ways, small and large, cut anywhere,
// run without one call of operator new. A program of its own, because it replaces operator new.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/rdmap/stream_side.hpp"

namespace {
bool counting = false;
std::size_t allocations = 0;

void* allocate(std::size_t size) {
  if (counting) ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

namespace iwarp::stream_test {
namespace {

// Moves octets from one engine to the other as a socket would, at most `limit` at a time, and allocates nothing.
bool move(stream_side& from, stream_side& to, std::size_t limit) {
  bool moved = false;
  while (to.engine.wants_read()) {
    const auto pieces = from.engine.tx_window({});
    const auto window = to.engine.rx_window();
    std::size_t n = 0;
    for (const auto& piece : pieces) {
      const std::size_t part = std::min({piece.size, window.size() - n, limit - n});
      std::copy_n(static_cast<const std::byte*>(piece.data), part, window.begin() + static_cast<std::ptrdiff_t>(n));
      n += part;
    }
    if (n == 0) break;
    from.engine.tx_advance(n, {});
    to.engine.rx_commit(n, {});
    to.engine.rx_park({});
    moved = true;
  }
  return moved;
}

struct flow {
  stream_side& from;
  stream_side& to;
  region &own, &sink, &lent, &into;
  std::size_t next_receive = 0;

  flow(stream_side& sender, stream_side& other)
      : from(sender),
        to(other),
        own(sender.user.add(200'000)),
        sink(sender.user.add(200'000)),
        lent(other.user.add(200'000, {.remote_read = true, .remote_write = true})),
        into(other.user.add(200'000)) {
    for (int i = 0; i < 8; ++i) other.user.post_receive({into.element(0, 1000), into.element(1000, 199'000)});
  }
  void post(std::size_t size) {
    from.post({.op = rdmap::operation::send}, {own.element(0, size / 2), own.element(size / 2, size - size / 2)});
    from.post({.op = rdmap::operation::write, .remote = lent.key, .remote_offset = lent.base}, {own.element(0, size)});
    from.post({.op = rdmap::operation::read, .remote = lent.key, .remote_offset = lent.base}, {sink.element(0, size)});
  }
  void repost() {
    while (next_receive < to.user.receives.size()) to.user.repost(to.user.receives[next_receive++].id);
    to.engine.receive_posted({});
  }
};

TEST(Counting, Counts) {
  counting = true;
  ::operator delete(::operator new(1));
  std::vector<int> one(1);
  counting = false;
  EXPECT_EQ(std::exchange(allocations, 0u), 2u) << one.size();
}

class NoAllocation : public testing::TestWithParam<std::tuple<bool, std::size_t, std::uint32_t>> {};

TEST_P(NoAllocation, InASteadyStream) {
  const auto [markers, limit, emss] = GetParam();
  rdmap::stream_options options;
  options.startup.markers = markers;
  stream_side a(options), b(options);
  a.engine.handle_emss(emss);
  b.engine.handle_emss(emss);
  b.engine.respond({});
  a.engine.initiate({}, {});
  move(a, b, limit);
  a.poll();
  b.poll();
  b.engine.accept({}, 16, 16, {});
  move(b, a, limit);
  ASSERT_EQ(a.engine.state(), rdmap::stream_state::open);
  flow there(a, b), back(b, a);
  const auto round = [&](std::size_t size) {
    there.post(size);
    back.post(size);
    // Both, and never short-cut: each must have its turn.
    while (static_cast<int>(move(a, b, limit)) + static_cast<int>(move(b, a, limit)) != 0) {
      there.repost();
      back.repost();
    }
  };
  constexpr std::size_t sizes[] = {0, 1, 64, 513, 1449, 5000, 66'000, 200'000};
  for (const std::size_t size : sizes) round(size);  // warm-up: pools fill
  counting = true;
  for (int i = 0; i < 3; ++i) {
    for (const std::size_t size : sizes) round(size);
  }
  counting = false;
  EXPECT_EQ(std::exchange(allocations, 0u), 0u);
  EXPECT_EQ(a.count(rdmap::wr_status::success), 4u * 3 * std::size(sizes)) << a.engine.error().message();
  EXPECT_EQ(b.count(rdmap::wr_status::success), 4u * 3 * std::size(sizes)) << b.engine.error().message();
}

INSTANTIATE_TEST_SUITE_P(Streams, NoAllocation,
                         testing::Combine(testing::Bool(), testing::Values(std::size_t{997}, std::size_t{1} << 20),
                                          testing::Values(1448, 65483)));

}  // namespace
}  // namespace iwarp::stream_test
