// Who lives how long, where handlers run, and with whose memory.
#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async_world.hpp"

namespace iwarp::verbs {
namespace {

using AsyncLifetime = AsyncTest;
IWARP_BOTH_MODES(AsyncLifetime);

TEST_P(AsyncLifetime, CloseAbortsWhatIsUnderWay) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  outcome first, second, ended;
  pair.client.async_receive(here.element(), first.handler());
  pair.client.async_receive(here.element(), second.handler());
  pair.client.async_wait_end(ended.handler());
  world.settle();
  pair.client.close();
  EXPECT_EQ(first.calls + second.calls + ended.calls, 0) << "a handler ran inside close()";
  world.run_until([&] { return first.calls && second.calls && ended.calls; });
  for (const outcome* one : {&first, &second, &ended}) {
    EXPECT_EQ(one->error, asio::error::operation_aborted) << one->error.message();
  }
  outcome late;
  pair.client.async_receive(here.element(), late.handler());
  pair.client.close();  // twice is once
  world.run_until(late);
  EXPECT_TRUE(late.error == errc::not_connected) << late.error.message();
}

TEST_P(AsyncLifetime, DestructionAbortsWhatIsUnderWay) {
  outcome received, read, connecting;
  auto silent = world.listen();  // nobody accepts
  {
    async_pair pair(world);
    buffer here(world.pd, 100);
    pair.client.async_receive(here.element(), received.handler());
    pair.client.async_read(here.element(), here.remote(), read.handler());
    async_connection other = world.make();
    other.async_connect(silent.local(), connecting.handler());
    async_connection moved = std::move(pair.client);  // operations move with it
  }
  world.run_until([&] { return received.calls && read.calls && connecting.calls; });
  EXPECT_EQ(received.error, asio::error::operation_aborted) << received.error.message();
  EXPECT_EQ(connecting.error, asio::error::operation_aborted) << connecting.error.message();
  EXPECT_TRUE(!read.error || read.error == asio::error::operation_aborted) << read.error.message();
}

TEST_P(AsyncLifetime, AHandlerMayDestroyItsConnection) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  outcome second;
  pair.server.async_receive(there.element(), [&](const error_code&, std::size_t) { pair.server = {}; });
  pair.server.async_receive(there.element(), second.handler());
  outcome sent;
  pair.client.async_send(here.element(), sent.handler());
  world.run_until(second);
  EXPECT_EQ(second.error, asio::error::operation_aborted) << second.error.message();
  EXPECT_FALSE(static_cast<bool>(pair.server));
  world.run_until(sent);
}

TEST_P(AsyncLifetime, AHandlerMayThrow) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  outcome second, sent;
  pair.server.async_receive(there.element(), [](const error_code&, std::size_t) { throw std::logic_error("mine"); });
  pair.server.async_receive(there.element(), second.handler());
  pair.client.async_send(here.element(), sent.handler());
  pair.client.async_send(here.element(), sent.handler());
  EXPECT_THROW(world.run_until(second), std::logic_error);
  world.run_until(second);
  EXPECT_FALSE(second.error) << second.error.message();
}

// The context goes first, with operations under way: handlers are destroyed, not called. With automatic progress only:
// a manual stack's io_context must outlive it.
TEST(AsyncShutdown, HandlersAreDestroyedWithTheirContext) {
  const auto witness = std::make_shared<int>(0);
  auto stack = context::create().value();
  const auto pd = protection_domain::create(stack);
  {
    asio::io_context io;
    auto listener = std::make_unique<async_listener>(
        async_listener::create(io.get_executor(), stack, {asio::ip::address_v4::loopback(), 0}).value());
    const endpoint where = listener->local();
    auto coroutine = [witness, pd, stack, where, &io]() -> asio::awaitable<void> {
      // Connection, buffer and the pending operation's handler hold each other.
      async_connection c = async_connection::create(io.get_executor(), stack, pd).value();
      buffer mine(pd, 100);
      co_await c.async_connect(where, asio::use_awaitable);
      ++*witness;
      co_await c.async_receive(mine.element(), asio::use_awaitable);
    };
    asio::co_spawn(io, coroutine, asio::detached);
    auto acceptor = [witness, pd, l = std::move(listener)]() mutable -> asio::awaitable<void> {
      auto mine = std::move(l);
      async_connection c = co_await mine->async_accept(pd, asio::use_awaitable);
      co_await mine->async_accept(pd, asio::use_awaitable);
    };
    asio::co_spawn(io, std::move(acceptor), asio::detached);
    while (*witness == 0) io.run_one();
    io.poll();
    EXPECT_GT(witness.use_count(), 1);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

// Manual progress: the io_context goes last, with coroutines suspended in it whose connections belong to the stack.
TEST(AsyncShutdown, ManualStackGoesDownWithCoroutinesSuspended) {
  const auto witness = std::make_shared<int>(0);
  {
    async_world world(progress_mode::manual);
    auto listener = world.listen();
    const auto client = [&, witness]() -> asio::awaitable<void> {
      auto c = world.make();
      buffer mine(world.pd, 100);
      co_await c.async_connect(listener.local(), asio::use_awaitable);
      ++*witness;
      co_await c.async_receive(mine.element(), asio::use_awaitable);
    };
    const auto server = [&, witness]() -> asio::awaitable<void> {
      auto c = co_await listener.async_accept(world.pd, asio::use_awaitable);
      co_await c.async_wait_end(asio::use_awaitable);
    };
    asio::co_spawn(world.io, client, asio::detached);
    asio::co_spawn(world.io, server, asio::detached);
    world.run_until([&] { return *witness != 0; });
    world.settle();
  }
  EXPECT_EQ(witness.use_count(), 1);
}

/// What was allocated, and what of it was not given back yet.
struct allocation_counts {
  int taken = 0;
  int held = 0;
};
template <class T>
struct counting_allocator {
  using value_type = T;
  explicit counting_allocator(allocation_counts& c) : counts(&c) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) : counts(other.counts) {}
  T* allocate(std::size_t n) {
    ++counts->taken;
    ++counts->held;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    --counts->held;
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const counting_allocator<U>& other) const {
    return counts == other.counts;
  }
  allocation_counts* counts;
};

struct allocating_handler {
  using allocator_type = counting_allocator<std::byte>;
  [[nodiscard]] allocator_type get_allocator() const { return allocator; }
  void operator()(const error_code& error, std::size_t size) const {
    EXPECT_EQ(allocator.counts->held, 0) << "the operation's memory is still held while its handler runs";
    (*result)(error, size);
  }
  allocator_type allocator;
  outcome* result;
};

TEST_P(AsyncLifetime, MemoryComesFromTheAssociatedAllocator) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  allocation_counts counts;
  outcome read, refused, aborted;
  pair.client.async_read(here.element(), here.remote(),
                         allocating_handler{counting_allocator<std::byte>(counts), &read});
  EXPECT_GE(counts.taken, 1);
  world.run_until(read);
  EXPECT_FALSE(read.error) << read.error.message();
  EXPECT_EQ(counts.held, 0);
  auto alone = world.make();
  alone.async_send(here.element(), allocating_handler{counting_allocator<std::byte>(counts), &refused});
  world.run_until(refused);
  EXPECT_EQ(counts.held, 0);
  pair.client.async_receive(here.element(), allocating_handler{counting_allocator<std::byte>(counts), &aborted});
  pair.client = {};
  world.run_until(aborted);
  EXPECT_EQ(counts.held, 0);
  EXPECT_GE(counts.taken, 3);
}

TEST_P(AsyncLifetime, HandlersRunInTheirAssociatedExecutor) {
  async_pair pair(world);
  buffer here(world.pd, 100);
  auto strand = asio::make_strand(world.io);
  outcome read, refused, accepted;
  const auto in_strand = [&strand](outcome& to) {
    return asio::bind_executor(strand, [&strand, &to](const error_code& e, auto&&...) {
      EXPECT_TRUE(strand.running_in_this_thread());
      to(e);
    });
  };
  pair.client.async_read(here.element(), here.remote(), in_strand(read));
  pair.client.async_send(std::vector<sge>(10, here.element()), in_strand(refused));
  pair.listener.async_accept(world.pd, in_strand(accepted));
  pair.listener.close();
  world.run_until([&] { return read.calls && refused.calls && accepted.calls; });
  EXPECT_FALSE(read.error) << read.error.message();
  EXPECT_TRUE(refused.error == errc::invalid_sge_count) << refused.error.message();
  EXPECT_EQ(accepted.error, asio::error::operation_aborted) << accepted.error.message();
}

// Another context's executor: its run() must not return while the operation is under way.
TEST_P(AsyncLifetime, TheHandlersContextHasWork) {
  async_pair pair(world);
  buffer here(world.pd, 100), there(world.pd, 100);
  asio::io_context other;
  outcome received;
  pair.server.async_receive(here.element(), asio::bind_executor(other, received.handler()));
  other.poll();
  EXPECT_FALSE(other.stopped()) << "the other context thought it had nothing to wait for";
  outcome sent;
  pair.client.async_send(there.element(), sent.handler());
  world.run_until([&] {
    other.poll();
    return received.calls && sent.calls;
  });
  EXPECT_FALSE(received.error) << received.error.message();
  other.poll();
  EXPECT_TRUE(other.stopped());
}

}  // namespace
}  // namespace iwarp::verbs
