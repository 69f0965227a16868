#include "tcp_glue/kernel_transport.hpp"

#include "fake_engine.hpp"
#include "loopback.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace iwarp::tcp_glue::test {
namespace {

using mpa::disposition;
using state = transport::io_state;

class KernelTransport : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    pair = join(loop, GetParam() ? loopback_v6() : loopback_v4());
    ASSERT_TRUE(pair.active && pair.passive);
  }

  void start() {
    a = std::make_shared<connection>(std::move(pair.active), engine_a);
    b = std::make_shared<connection>(std::move(pair.passive), engine_b);
    a->service();
    b->service();
  }

  static int option(transport& t, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(dynamic_cast<kernel_transport&>(t).native_handle(), level, name, &value, &size), 0);
    return value;
  }

  event_loop loop;
  transport_pair pair;
  fake_engine engine_a;
  fake_engine engine_b;
  std::shared_ptr<connection> a;
  std::shared_ptr<connection> b;
};

INSTANTIATE_TEST_SUITE_P(Loopback, KernelTransport, testing::Bool(),
                         [](const auto& which) { return which.param ? "IPv6" : "IPv4"; });

// MPA-40: no Nagle.
TEST_P(KernelTransport, IsSetUpOnBothSides) {
  for (transport* t : {pair.active.get(), pair.passive.get()}) {
    const int fd = dynamic_cast<kernel_transport&>(*t).native_handle();
    EXPECT_NE(option(*t, IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_NE(option(*t, SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    octets buffer(1);
    EXPECT_EQ(t->read(buffer).state, state::would_block);
    // Loopback carries segments of nearly 64 KiB; what matters is that it is known and sane.
    EXPECT_GE(t->emss(), 536U);
    EXPECT_LE(t->emss(), 65535U);
  }
  EXPECT_EQ(pair.active->local_endpoint(), pair.passive->remote_endpoint());
  EXPECT_EQ(pair.active->remote_endpoint(), pair.passive->local_endpoint());
}

TEST_P(KernelTransport, SendsAGatherListLongerThanTheKernelTakes) {
  engine_a.to_send = pattern(100000);
  engine_a.piece_size = 7;
  engine_a.pieces_per_window = 5000;  // IOV_MAX is 1024
  start();
  ASSERT_TRUE(loop.run_until([&] { return engine_b.received.size() >= engine_a.to_send.size(); }));
  EXPECT_EQ(engine_b.received, engine_a.to_send);
}

TEST_P(KernelTransport, PartialWritesToASlowReader) {
  engine_a.to_send = pattern(12U << 20);
  engine_a.piece_size = 100000;
  engine_b.takes_octets = false;
  start();
  EXPECT_TRUE(a->driver().tx_blocked()) << "no socket buffer here holds 12 MiB";
  const auto stuck_at = engine_a.sent;
  EXPECT_GT(stuck_at, 0U);
  EXPECT_LT(stuck_at, engine_a.to_send.size());
  engine_b.takes_octets = true;
  b->budget = 10000;
  b->service();
  ASSERT_TRUE(loop.run_until([&] { return engine_b.received.size() >= engine_a.to_send.size(); }));
  EXPECT_EQ(engine_b.received, engine_a.to_send);
  EXPECT_FALSE(a->driver().tx_blocked());
}

// The peer keeps sending, nobody here wants octets: no handler runs, no read is tried.
TEST_P(KernelTransport, DoesNotSpinWhileTheEngineTakesNothing) {
  engine_a.to_send = pattern(12U << 20);
  engine_b.takes_octets = false;
  start();
  for (int i = 0; i < 100; ++i) loop.run_ready();  // let the buffers fill
  std::size_t handlers = 0;
  for (int i = 0; i < 1000; ++i) handlers += loop.run_ready();
  EXPECT_LE(handlers, 2U);
  EXPECT_EQ(engine_b.windows, 0U);
}

// MPA-80, MPA-81 over a real TCP.
TEST_P(KernelTransport, FinFollowsTheDataAndTheOtherHalfLives) {
  engine_a.to_send = pattern(1U << 20);
  engine_a.want = disposition::shutdown_write;
  start();
  ASSERT_TRUE(loop.run_until([&] { return engine_b.eofs > 0; }));
  EXPECT_EQ(engine_b.received, engine_a.to_send);
  std::size_t handlers = 0;
  for (int i = 0; i < 100; ++i) handlers += loop.run_ready();
  EXPECT_LE(handlers, 2U) << "a socket at its end is readable for ever";
  engine_b.to_send = pattern(1U << 20, 2);
  engine_b.want = disposition::close;
  engine_a.want_on_eof = disposition::close;
  b->service();
  ASSERT_TRUE(loop.run_until([&] { return a->driver().closed() && b->driver().closed(); }));
  EXPECT_EQ(engine_a.received, engine_b.to_send);
  EXPECT_EQ(engine_a.losses + engine_b.losses, 0U);
}

TEST_P(KernelTransport, AbortResetsThePeer) {
  start();
  engine_a.to_send = pattern(100);
  a->service();
  engine_a.want = disposition::abort;
  a->service();
  EXPECT_TRUE(a->driver().closed());
  ASSERT_TRUE(loop.run_until([&] { return b->driver().closed(); }));
  EXPECT_EQ(engine_b.eofs, 0U);
  EXPECT_EQ(engine_b.losses, 1U);
  EXPECT_EQ(engine_b.lost_reason, std::errc::connection_reset) << engine_b.lost_reason.message();
  EXPECT_EQ(engine_b.lost_reason.category(), std::system_category());
}

TEST_P(KernelTransport, WritingToAClosedPeerIsALossAndNoSignal) {
  start();
  engine_b.want = disposition::abort;
  b->service();
  engine_a.takes_octets = false;  // so that the write meets it
  for (int i = 0; i < 10 && !a->driver().closed(); ++i) {
    engine_a.to_send = pattern(engine_a.to_send.size() + 10);
    a->service();
  }
  EXPECT_TRUE(a->driver().closed());
  EXPECT_EQ(engine_a.losses, 1U);
}

TEST_P(KernelTransport, UnreadableMemoryIsALossThatThePeerSees) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const forbidden = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(forbidden, MAP_FAILED);
  const gather_piece piece{forbidden, page};
  const auto got = pair.active->write({&piece, 1});
  EXPECT_EQ(got.state, state::failed);
  EXPECT_EQ(got.error, std::errc::bad_address);
  ::munmap(forbidden, page);
}

TEST_P(KernelTransport, ClosedTransportFailsPolitely) {
  pair.active->close();
  octets buffer(1);
  EXPECT_EQ(pair.active->read(buffer).error, std::errc::bad_file_descriptor);
  const gather_piece piece{buffer.data(), 1};
  EXPECT_EQ(pair.active->write({&piece, 1}).error, std::errc::bad_file_descriptor);
  EXPECT_FALSE(pair.active->local_endpoint());
  EXPECT_FALSE(pair.active->remote_endpoint());
  EXPECT_EQ(pair.active->emss(), default_emss);
  pair.active->shutdown_write();
  pair.active->abort();
  pair.active->cancel();
}

struct recorder final : readiness_handler {
  void on_readable(std::error_code ec) noexcept override { readable.push_back(ec); }
  void on_writable(std::error_code ec) noexcept override { writable.push_back(ec); }
  std::vector<std::error_code> readable;
  std::vector<std::error_code> writable;
};

TEST_P(KernelTransport, WaitsAreCancelledByCancelCloseAndDestruction) {
  const std::function<void(std::unique_ptr<transport>&)> ways[] = {
      [](auto& t) { t->cancel(); }, [](auto& t) { t->close(); }, [](auto& t) { t->abort(); },
      [](auto& t) { t.reset(); }};
  for (const auto& end_wait : ways) {
    auto one = join(loop, GetParam() ? loopback_v6() : loopback_v4());
    const auto seen = std::make_shared<recorder>();
    one.active->wait_readable(seen);
    loop.run_ready();
    EXPECT_TRUE(seen->readable.empty());
    end_wait(one.active);
    EXPECT_TRUE(seen->readable.empty()) << "never inside the call";
    ASSERT_TRUE(loop.run_until([&] { return !seen->readable.empty(); }));
    EXPECT_EQ(seen->readable[0], std::errc::operation_canceled);
    EXPECT_EQ(seen.use_count(), 1) << "no wait holds it any more";
  }
}

TEST_P(KernelTransport, WaitsEndByOctetsRoomAndLoss) {
  const auto seen = std::make_shared<recorder>();
  const octets one(1);
  const gather_piece piece{one.data(), 1};
  pair.passive->wait_readable(seen);
  loop.run_ready();
  EXPECT_TRUE(seen->readable.empty());
  pair.active->write({&piece, 1});
  ASSERT_TRUE(loop.run_until([&] { return seen->readable.size() == 1; }));
  EXPECT_FALSE(seen->readable[0]);
  // One-shot, and a second wait finds the octet still there.
  loop.run_ready();
  EXPECT_EQ(seen->readable.size(), 1U);
  pair.passive->wait_readable(seen);
  pair.passive->wait_writable(seen);
  ASSERT_TRUE(loop.run_until([&] { return seen->readable.size() == 2 && seen->writable.size() == 1; }));
  octets buffer(8);
  EXPECT_EQ(pair.passive->read(buffer).size, 1U);
  pair.passive->wait_readable(seen);
  loop.run_ready();
  EXPECT_EQ(seen->readable.size(), 2U);
  pair.active->abort();
  ASSERT_TRUE(loop.run_until([&] { return seen->readable.size() == 3; }));
  EXPECT_FALSE(seen->readable[2]) << "a loss is readiness; read() says what it is";
  EXPECT_EQ(pair.passive->read(buffer).error, std::errc::connection_reset);
}

TEST_P(KernelTransport, LeaksNoDescriptor) {
  const auto before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    auto one = join(loop, GetParam() ? loopback_v6() : loopback_v4());
    ASSERT_TRUE(one.active && one.passive) << i;
    const auto seen = std::make_shared<recorder>();
    one.passive->wait_readable(seen);
    switch (i % 4) {
      case 0:
        one.active->abort();
        break;
      case 1:
        one.active->close();
        one.passive->close();
        break;
      case 2:
        one.passive.reset();
        break;
      default:
        break;
    }
  }
  loop.run_ready();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(KernelTransportMake, RefusesASocketThatIsNotOpen) {
  event_loop loop;
  const auto made = kernel_transport::make(boost::asio::ip::tcp::socket(loop.context));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace iwarp::tcp_glue::test
