#include "tcp_glue/kernel_transport.hpp"

#include "tcp_glue/native_socket.hpp"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstddef>

namespace iwarp::tcp_glue {
namespace {

// A gather list goes to the kernel as it is.
static_assert(sizeof(gather_piece) == sizeof(iovec) && alignof(gather_piece) == alignof(iovec));
static_assert(offsetof(gather_piece, data) == offsetof(iovec, iov_base));
static_assert(offsetof(gather_piece, size) == offsetof(iovec, iov_len));
static_assert(sizeof(gather_piece::size) == sizeof(iovec::iov_len));

transport::io_result io_error(int value) noexcept {
  if (value == EAGAIN || value == EWOULDBLOCK) return {.state = transport::io_state::would_block};
  return {.state = transport::io_state::failed, .error = {value, std::system_category()}};
}

std::uint32_t option(int fd, int name) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, IPPROTO_TCP, name, &value, &size) != 0 || value < 0) return 0;
  return static_cast<std::uint32_t>(value);
}

}  // namespace

kernel_transport::kernel_transport(boost::asio::ip::tcp::socket socket) noexcept : socket_(std::move(socket)) {}

result<std::unique_ptr<kernel_transport>> kernel_transport::make(boost::asio::ip::tcp::socket socket) {
  const int fd = socket.native_handle();
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags < 0 || ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0) return fail(last_errno());
  boost::system::error_code ec;
  socket.non_blocking(true, ec);
  if (!ec) socket.set_option(boost::asio::ip::tcp::no_delay(true), ec);
  if (!ec) socket.set_option(boost::asio::socket_base::keep_alive(true), ec);
  if (ec) return fail(to_std(ec));
  return std::unique_ptr<kernel_transport>(new kernel_transport(std::move(socket)));
}

transport::io_result kernel_transport::read(mutable_bytes into) noexcept {
  assert(!into.empty());  // recv() of nothing cannot be told from the peer's FIN
  for (;;) {
    const ssize_t n = ::recv(socket_.native_handle(), into.data(), into.size(), 0);
    if (n > 0) return {.size = static_cast<std::size_t>(n)};
    if (n == 0) return {.state = io_state::end_of_stream};
    if (errno != EINTR) return io_error(errno);
  }
}

transport::io_result kernel_transport::write(std::span<const gather_piece> pieces) noexcept {
  assert(!pieces.empty());
  msghdr message{};
  // The kernel only reads the list and what it points to, whatever the types of sendmsg(2) say.
  message.msg_iov = reinterpret_cast<iovec*>(const_cast<gather_piece*>(pieces.data()));
  // A longer list is refused whole (EMSGSIZE): send its beginning, which the caller takes as a partial write.
  message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
  for (;;) {
    const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
    if (n >= 0) return {.size = static_cast<std::size_t>(n)};
    if (errno != EINTR) return io_error(errno);
  }
}

void kernel_transport::shutdown_write() noexcept {
  boost::system::error_code ignored;  // a connection that is gone says so at the next read
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void kernel_transport::close() noexcept {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void kernel_transport::abort() noexcept {
  boost::system::error_code ignored;
  socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

void kernel_transport::wait_readable(std::shared_ptr<readiness_handler> handler) {
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                     [handler = std::move(handler)](const boost::system::error_code& ec) {
                       handler->on_readable(ec ? to_std(ec) : std::error_code{});
                     });
}

void kernel_transport::wait_writable(std::shared_ptr<readiness_handler> handler) {
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_write,
                     [handler = std::move(handler)](const boost::system::error_code& ec) {
                       handler->on_writable(ec ? to_std(ec) : std::error_code{});
                     });
}

// Errors alone: arriving octets and the peer's FIN do not end this wait. Urgent data does: iWARP has none, so whoever
// sends it is as good as gone.
void kernel_transport::wait_lost(std::shared_ptr<readiness_handler> handler) {
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_error,
                     [handler = std::move(handler)](const boost::system::error_code& ec) {
                       handler->on_lost(ec ? to_std(ec) : std::make_error_code(std::errc::connection_reset));
                     });
}

void kernel_transport::cancel() noexcept {
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

// Not TCP_USER_TIMEOUT: that also ends a connection whose peer answers, but has kept its window closed for so long.
// Such a peer is only waiting for a receive to be posted.
void kernel_transport::keep_alive(std::chrono::seconds limit) noexcept {
  static constexpr int probes = 3;
  const int seconds = static_cast<int>(limit.count());
  const int interval = std::max(1, seconds / (2 * probes));
  const int idle = std::max(1, seconds - probes * interval);
  const int fd = socket_.native_handle();
  // A kernel that refuses one of them goes on with its own.
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::optional<std::chrono::milliseconds> kernel_transport::unanswered() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_last_ack_recv) + sizeof info.tcpi_last_ack_recv) {
    return std::nullopt;
  }
  if (info.tcpi_unacked == 0 && info.tcpi_probes == 0) return std::nullopt;
  return std::chrono::milliseconds(info.tcpi_last_ack_recv);
}

std::uint32_t kernel_transport::emss() const noexcept {
  const int fd = socket_.native_handle();
  // TCP_MAXSEG on a connection is what one segment carries now: path MTU and TCP options are already taken off.
  if (const auto mss = option(fd, TCP_MAXSEG); mss != 0) return mss;
  // Some kernels know none before the first acknowledgement; a zero must not become a segment size.
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
      size >= offsetof(tcp_info, tcpi_snd_mss) + sizeof info.tcpi_snd_mss && info.tcpi_snd_mss != 0)
    return info.tcpi_snd_mss;
  return default_emss;
}

result<endpoint> kernel_transport::local_endpoint() const noexcept {
  boost::system::error_code ec;
  const auto found = socket_.local_endpoint(ec);
  if (ec) return fail(to_std(ec));
  return found;
}

result<endpoint> kernel_transport::remote_endpoint() const noexcept {
  boost::system::error_code ec;
  const auto found = socket_.remote_endpoint(ec);
  if (ec) return fail(to_std(ec));
  return found;
}

}  // namespace iwarp::tcp_glue
