#include "tcp_glue/connector.hpp"

#include "loopback.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace iwarp::tcp_glue::test {
namespace {

using namespace std::chrono_literals;

// A port at which connecting neither succeeds nor fails: its backlog is full, so the kernel drops every SYN.
class silent_port {
 public:
  silent_port() {
    const auto where = loopback_v4();
    fds_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(fds_[0], where.data(), static_cast<socklen_t>(where.size())), 0);
    EXPECT_EQ(::listen(fds_[0], 0), 0);
    socklen_t size = static_cast<socklen_t>(where_.capacity());
    EXPECT_EQ(::getsockname(fds_[0], where_.data(), &size), 0);
    for (int i = 0; i < 16 && !full_; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      fds_.push_back(fd);
      ::connect(fd, where_.data(), static_cast<socklen_t>(where_.size()));
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      full_ = ::poll(&ready, 1, 50) == 0;
    }
  }
  ~silent_port() {
    for (const int fd : fds_) ::close(fd);
  }
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] const endpoint& where() const { return where_; }

  silent_port(const silent_port&) = delete;
  silent_port& operator=(const silent_port&) = delete;

 private:
  std::vector<int> fds_;
  endpoint where_ = loopback_v4();
  bool full_ = false;
};

std::uint16_t closed_port(event_loop& loop) {
  const auto listener = listen(loop, loopback_v4());
  return listener->local_endpoint().port();
}

TEST(Connector, SaysThatAPortIsClosed) {
  event_loop loop;
  connect_outcome outcome;
  async_connect(loop.executor(), {.remote = loopback_v4(closed_port(loop)), .timeout = 10s}, outcome.handler());
  EXPECT_EQ(outcome.calls, 0U) << "never inside the call";
  ASSERT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
  EXPECT_EQ(outcome.error, std::errc::connection_refused) << outcome.error.message();
  EXPECT_EQ(outcome.opened, nullptr);
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
}

TEST(Connector, GivesUpAfterItsTimeout) {
  event_loop loop;
  const silent_port port;
  ASSERT_TRUE(port.full());
  const auto before = open_descriptors();
  connect_outcome outcome;
  const auto begun = std::chrono::steady_clock::now();
  async_connect(loop.executor(), {.remote = port.where(), .timeout = 50ms}, outcome.handler());
  ASSERT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
  EXPECT_EQ(outcome.error, std::errc::timed_out) << outcome.error.message();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 50ms);
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Connector, CancelReportsOnceAndLaterCancelsDoNothing) {
  event_loop loop;
  const silent_port port;
  ASSERT_TRUE(port.full());
  connect_outcome outcome;
  auto attempt = async_connect(loop.executor(), {.remote = port.where(), .timeout = 10s}, outcome.handler());
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 0U);
  attempt.cancel();
  EXPECT_EQ(outcome.calls, 0U) << "never inside the call";
  attempt.cancel();
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  EXPECT_EQ(outcome.error, std::errc::operation_canceled);
  attempt.cancel();
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  connect_attempt().cancel();
}

TEST(Connector, CancelBeforeTheLoopHearsOfSuccessCancels) {
  event_loop loop;
  const auto listener = listen(loop, loopback_v4());
  connect_outcome outcome;
  auto attempt = async_connect(loop.executor(), {.remote = listener->local_endpoint()}, outcome.handler());
  attempt.cancel();
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  EXPECT_EQ(outcome.error, std::errc::operation_canceled);
  EXPECT_EQ(outcome.opened, nullptr);
}

TEST(Connector, CancelAfterSuccessLeavesTheTransportAlone) {
  event_loop loop;
  const auto listener = listen(loop, loopback_v4());
  connect_outcome outcome;
  auto attempt =
      async_connect(loop.executor(), {.remote = listener->local_endpoint(), .timeout = 10s}, outcome.handler());
  ASSERT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
  attempt.cancel();
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  EXPECT_TRUE(outcome.opened && outcome.opened->remote_endpoint());
}

// The kernel joins a socket to itself when source and destination are the same; nobody may take that for a peer.
TEST(Connector, RefusesToTalkToItself) {
  event_loop loop;
  const auto port = closed_port(loop);
  connect_outcome outcome;
  async_connect(loop.executor(), {.remote = loopback_v4(port), .local = loopback_v4(port)}, outcome.handler());
  ASSERT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
  EXPECT_EQ(outcome.error, std::errc::connection_refused) << outcome.error.message();
  EXPECT_EQ(outcome.opened, nullptr);
  EXPECT_NE(listen(loop, loopback_v4(port)), nullptr) << "the port is free at once";
}

TEST(Connector, TakesTheSourceAddressItIsGiven) {
  event_loop loop;
  const auto listener = listen(loop, loopback_v4());
  connect_outcome outcome;
  const endpoint local(boost::asio::ip::make_address("127.0.0.2"), 0);
  async_connect(loop.executor(), {.remote = listener->local_endpoint(), .local = local}, outcome.handler());
  ASSERT_TRUE(loop.run_until([&] { return outcome.calls > 0; }));
  ASSERT_TRUE(outcome.opened) << outcome.error.message();
  EXPECT_EQ(outcome.opened->local_endpoint()->address(), local.address());
}

TEST(Connector, SaysThatASourceAddressIsNotOurs) {
  event_loop loop;
  const auto before = open_descriptors();
  connect_outcome outcome;
  const endpoint local(boost::asio::ip::make_address("192.0.2.1"), 0);
  async_connect(loop.executor(), {.remote = loopback_v4(1), .local = local}, outcome.handler());
  EXPECT_EQ(outcome.calls, 0U) << "never inside the call";
  loop.run_ready();
  EXPECT_EQ(outcome.calls, 1U);
  EXPECT_EQ(outcome.error, std::errc::address_not_available) << outcome.error.message();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Connector, LoopEndingWithAnAttemptUnderWayIsClean) {
  const silent_port port;
  ASSERT_TRUE(port.full());
  const auto before = open_descriptors();
  connect_outcome outcome;
  {
    event_loop loop;
    async_connect(loop.executor(), {.remote = port.where(), .timeout = 10s}, outcome.handler());
    loop.run_ready();
  }
  EXPECT_EQ(outcome.calls, 0U);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace iwarp::tcp_glue::test
