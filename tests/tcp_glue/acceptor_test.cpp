#include "tcp_glue/acceptor.hpp"

#include "loopback.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace iwarp::tcp_glue::test {
namespace {

using namespace std::chrono_literals;

struct Acceptor : testing::Test {
  event_loop loop;
  std::vector<std::unique_ptr<transport>> accepted;

  acceptor::accept_handler keep() {
    return [this](std::unique_ptr<transport> t) { accepted.push_back(std::move(t)); };
  }
  // Connects and waits for the outcome.
  std::unique_ptr<transport> dial(const endpoint& where) {
    connect_outcome outcome;
    async_connect(loop.executor(), {.remote = where, .timeout = 5s}, outcome.handler());
    EXPECT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
    EXPECT_FALSE(outcome.error) << to_string(where) << ": " << outcome.error.message();
    return std::move(outcome.opened);
  }
};

// B023: a wildcard listener hears every local address, of both families.
TEST_F(Acceptor, WildcardTakesBothFamilies) {
  const auto listener = listen(loop, {boost::asio::ip::tcp::v6(), 0});
  ASSERT_TRUE(listener);
  listener->start(keep());
  const auto port = listener->local_endpoint().port();
  EXPECT_NE(port, 0);
  const auto four = dial(loopback_v4(port));
  const auto six = dial(loopback_v6(port));
  ASSERT_TRUE(loop.run_until([&] { return accepted.size() == 2; }));
  EXPECT_EQ(listener->totals().accepted, 2U);
  EXPECT_TRUE(accepted[0]->remote_endpoint());
}

TEST_F(Acceptor, V6OnlyLeavesIpv4ToOthers) {
  const auto six = listen(loop, {boost::asio::ip::tcp::v6(), 0}, {.v6_only = true});
  ASSERT_TRUE(six);
  const auto four = listen(loop, {boost::asio::ip::tcp::v4(), six->local_endpoint().port()});
  EXPECT_TRUE(four);
}

// B059, B218: a port is free as soon as close() returns, also with connections behind.
TEST_F(Acceptor, SamePortAgainAndAgain) {
  std::uint16_t port = 0;
  for (int i = 0; i < 100; ++i) {
    const auto listener = listen(loop, loopback_v4(port));
    ASSERT_TRUE(listener) << i;
    listener->start(keep());
    port = listener->local_endpoint().port();
    const auto peer = dial(loopback_v4(port));
    ASSERT_TRUE(loop.run_until([&] { return !accepted.empty(); }));
    accepted[0]->close();  // this side closes first: TIME-WAIT stays with the listener's port
    accepted.clear();
    listener->close();
  }
}

TEST_F(Acceptor, SecondListenerOnOneAddressIsRefused) {
  const auto first = listen(loop, loopback_v4());
  ASSERT_TRUE(first);
  const auto port = first->local_endpoint().port();
  const auto second = acceptor::open(loop.executor(), loopback_v4(port));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), std::errc::address_in_use) << second.error().message();
  const endpoint elsewhere(boost::asio::ip::make_address("127.0.0.2"), port);
  EXPECT_TRUE(listen(loop, elsewhere)) << "another local address is another listener";
}

TEST_F(Acceptor, SaysThatAnAddressIsNotOurs) {
  const auto before = open_descriptors();
  const auto made = acceptor::open(loop.executor(), {boost::asio::ip::make_address("192.0.2.1"), 0});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), std::errc::address_not_available) << made.error().message();
  EXPECT_EQ(open_descriptors(), before);
}

// Lowers the limit of descriptors to what is open now, until destroyed.
class no_more_descriptors {
 public:
  no_more_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest_free);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~no_more_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  no_more_descriptors(const no_more_descriptors&) = delete;
  no_more_descriptors& operator=(const no_more_descriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Acceptor, OutlivesRunningOutOfDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizers need descriptors themselves";
#endif
  const auto listener = listen(loop, loopback_v4());
  ASSERT_TRUE(listener);
  const auto peer = dial(listener->local_endpoint());
  {
    const no_more_descriptors limit;
    listener->start(keep());
    const auto handlers_before = loop.handlers;
    ASSERT_TRUE(loop.run_until([&] { return listener->totals().deferred >= 2; }));
    EXPECT_LT(loop.handlers - handlers_before, 10U);
    EXPECT_TRUE(accepted.empty());
  }
  ASSERT_TRUE(loop.run_until([&] { return !accepted.empty(); })) << "the waiting connection was not lost";
  const auto next = dial(listener->local_endpoint());
  EXPECT_TRUE(loop.run_until([&] { return accepted.size() == 2; }));
}

// Fails as scripted, then takes connections.
int scripted_errno = 0;
int scripted_failures = 0;
result<int> scripted_accept(int fd) noexcept {
  if (scripted_failures == 0) return accept_socket(fd);
  --scripted_failures;
  return fail(std::error_code(scripted_errno, std::system_category()));
}

TEST_F(Acceptor, RestsWhenItIsShortOfSomething) {
  for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EIO}) {
    accepted.clear();
    const auto listener = listen(loop, loopback_v4(), {.accept_one = scripted_accept});
    const auto peer = dial(listener->local_endpoint());
    scripted_errno = error;
    scripted_failures = 1;
    const auto handlers_before = loop.handlers;
    listener->start(keep());
    ASSERT_TRUE(loop.run_until([&] { return accepted.size() == 1; })) << error;
    EXPECT_EQ(listener->totals().deferred, 1U) << error;
    EXPECT_EQ(scripted_failures, 0) << error;
    EXPECT_LT(loop.handlers - handlers_before, 5U) << "it does not spin";
  }
}

TEST_F(Acceptor, ALostConnectionIsNoReasonToRest) {
  for (const int error : {ECONNABORTED, EPROTO, ENETUNREACH, EHOSTUNREACH, ENETDOWN, EPERM}) {
    accepted.clear();
    const auto listener = listen(loop, loopback_v4(), {.accept_one = scripted_accept});
    const auto peer = dial(listener->local_endpoint());
    scripted_errno = error;
    scripted_failures = 40;  // more than it takes in one turn
    listener->start(keep());
    ASSERT_TRUE(loop.run_until([&] { return accepted.size() == 1; })) << error;
    EXPECT_EQ(listener->totals().aborted, 40U) << error;
    EXPECT_EQ(listener->totals().deferred, 0U) << error;
  }
}

TEST_F(Acceptor, ClosesWhileItRests) {
  const auto listener = listen(loop, loopback_v4(), {.accept_one = scripted_accept});
  const auto peer = dial(listener->local_endpoint());
  scripted_errno = EMFILE;
  scripted_failures = 1;
  listener->start(keep());
  ASSERT_TRUE(loop.run_until([&] { return listener->totals().deferred == 1; }));
  listener->close();
  loop.run_ready();
  EXPECT_EQ(loop.run_ready(), 0U);
  EXPECT_TRUE(accepted.empty());
}

TEST_F(Acceptor, PutsEachConnectionOnTheExecutorItIsGiven) {
  event_loop others;
  int asked = 0;
  const auto next = [&]() -> boost::asio::any_io_executor {
    return ++asked % 2 ? boost::asio::any_io_executor(others.executor())
                       : boost::asio::any_io_executor(loop.executor());
  };
  const auto listener = listen(loop, loopback_v4(), {.executor_for_next = next});
  listener->start(keep());
  const auto one = dial(listener->local_endpoint());
  const auto two = dial(listener->local_endpoint());
  ASSERT_TRUE(loop.run_until([&] { return accepted.size() == 2; }));
  EXPECT_EQ(asked, 2);
  struct : readiness_handler {
    void on_readable(std::error_code) noexcept override {}
    void on_writable(std::error_code) noexcept override { ++calls; }
    int calls = 0;
  } seen;
  accepted[0]->wait_writable({std::shared_ptr<void>(), &seen});
  loop.run_ready();
  EXPECT_EQ(seen.calls, 0);
  EXPECT_TRUE(others.run_until([&] { return seen.calls == 1; }));
  accepted.clear();  // before the loop it waits on
}

TEST_F(Acceptor, TakesABurst) {
  const auto listener = listen(loop, loopback_v4());
  listener->start(keep());
  std::vector<connect_outcome> outcomes(100);
  for (auto& o : outcomes) async_connect(loop.executor(), {.remote = listener->local_endpoint()}, o.handler());
  EXPECT_TRUE(loop.run_until([&] { return accepted.size() == outcomes.size(); }));
  EXPECT_TRUE(loop.run_until([&] {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& o) { return o.calls == 1 && o.opened; });
  }));
}

TEST_F(Acceptor, PauseLeavesConnectionsInTheBacklog) {
  const auto listener = listen(loop, loopback_v4());
  listener->start(keep());
  listener->pause();
  const auto peer = dial(listener->local_endpoint());
  for (int i = 0; i < 100; ++i) loop.run_ready();
  EXPECT_TRUE(accepted.empty());
  EXPECT_EQ(loop.run_ready(), 0U) << "nor does it spin on the one that waits";
  listener->resume();
  listener->resume();
  EXPECT_TRUE(loop.run_until([&] { return accepted.size() == 1; }));
}

TEST_F(Acceptor, PauseInTheHandlerTakesNoFurtherOne) {
  const auto listener = listen(loop, loopback_v4());
  const auto one = dial(listener->local_endpoint());
  const auto two = dial(listener->local_endpoint());
  listener->start([&](std::unique_ptr<transport> t) {
    accepted.push_back(std::move(t));
    listener->pause();
  });
  ASSERT_TRUE(loop.run_until([&] { return !accepted.empty(); }));
  for (int i = 0; i < 10; ++i) loop.run_ready();
  EXPECT_EQ(accepted.size(), 1U);
  listener->resume();
  EXPECT_TRUE(loop.run_until([&] { return accepted.size() == 2; }));
}

TEST_F(Acceptor, ClosedOrDestroyedInItsOwnHandler) {
  for (const bool destroy : {false, true}) {
    accepted.clear();
    auto listener = listen(loop, loopback_v4());
    const auto where = listener->local_endpoint();
    const auto one = dial(where);
    const auto two = dial(where);
    listener->start([&, token = std::make_shared<int>(7)](std::unique_ptr<transport> t) {
      accepted.push_back(std::move(t));
      if (destroy)
        listener.reset();
      else
        listener->close();
      EXPECT_EQ(*token, 7) << "a handler lives as long as its call";
    });
    ASSERT_TRUE(loop.run_until([&] { return !accepted.empty(); }));
    for (int i = 0; i < 10; ++i) loop.run_ready();
    EXPECT_EQ(accepted.size(), 1U);
    EXPECT_TRUE(listen(loop, where));
  }
}

TEST_F(Acceptor, ClosesFromAnotherThreadWhileItAccepts) {
  for (int i = 0; i < 20; ++i) {
    accepted.clear();
    auto listener = listen(loop, loopback_v4());
    listener->start(keep());
    std::vector<connect_outcome> outcomes(10);
    for (auto& o : outcomes) async_connect(loop.executor(), {.remote = listener->local_endpoint()}, o.handler());
    std::thread closer([&] { listener->close(); });
    EXPECT_TRUE(loop.run_until(
        [&] { return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& o) { return o.calls == 1; }); }));
    closer.join();
    loop.run_ready();
    const auto count = accepted.size();
    EXPECT_EQ(loop.run_ready(), 0U);
    EXPECT_EQ(accepted.size(), count);
  }
}

}  // namespace
}  // namespace iwarp::tcp_glue::test
