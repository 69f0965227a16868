#include "tools/dump/live_stream.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/common/failure.hpp"

namespace iwarp::dump {
namespace {

using clock = std::chrono::steady_clock;

int left(clock::time_point until) {
  const auto span = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(span, 0, 3'600'000));
}

/// 0 or errno.
int connect_within(int fd, const tcp_glue::endpoint& where, std::chrono::milliseconds patience) {
  if (::connect(fd, where.data(), static_cast<socklen_t>(where.size())) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const auto until = clock::now() + patience;
  pollfd p{.fd = fd, .events = POLLOUT, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&p, 1, left(until));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

endpoint end_of(int fd, bool peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if ((peer ? ::getpeername(fd, generic, &size) : ::getsockname(fd, generic, &size)) != 0) return {};
  endpoint e;
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    e.ipv6 = true;
    std::memcpy(e.address.data(), &v6.sin6_addr, 16);
    e.port = ntohs(v6.sin6_port);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    std::memcpy(e.address.data(), &v4.sin_addr, 4);
    e.port = ntohs(v4.sin_port);
  }
  return e;
}

}  // namespace

live_stream::live_stream(const tools::peer& where, std::chrono::milliseconds patience, event_sink& out) {
  int error = 0;
  for (const tcp_glue::endpoint& address : where.addresses) {
    fd_ = ::socket(address.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) {
      error = errno;
      continue;
    }
    error = connect_within(fd_, address, patience);
    if (error == 0) break;
    ::close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0) throw tools::failure(fmt::format("cannot connect to {}: {}", where.text, std::strerror(error)));
  // FPDUs are to leave as they are framed (RFC 5044 s5.1).
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  client_ = end_of(fd_, false);
  server_ = end_of(fd_, true);
  const tcp_segment first{.from = client_, .to = server_, .syn = true};
  tcp_ = std::make_unique<connection>(limits_, memory_, first);
  analysis_ = std::make_unique<stream_analysis>(0, *tcp_, memory_, false, out, totals_);
  totals_.tcp_streams = 1;
  next_[0] = next_[1] = 0;
  tell(side::client, {}, true, false);
  tell(side::server, {}, true, false);
}

live_stream::~live_stream() {
  if (fd_ >= 0) ::close(fd_);
}

void live_stream::tell(side from, const_bytes octets, bool syn, bool fin, bool rst) {
  ++frame_.number;
  ++totals_.frames;
  frame_.time =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  auto& next = next_[index_of(from)];
  const bool client = from == side::client;
  const tcp_segment s{.from = client ? client_ : server_,
                      .to = client ? server_ : client_,
                      .sequence = next,
                      .acknowledged = next_[index_of(other(from))],
                      .syn = syn,
                      .ack = !(syn && client),
                      .fin = fin,
                      .rst = rst,
                      .payload = octets,
                      .length = octets.size(),
                      .frame = frame_};
  next += static_cast<std::uint32_t>(octets.size()) + (syn || fin ? 1u : 0u);
  (void)tcp_->add(s, *analysis_);
}

void live_stream::run(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  const auto until = clock::now() + patience;
  std::array<std::byte, 65536> in;
  while (!done() && !ended_) {
    pollfd p{.fd = fd_, .events = static_cast<short>(POLLIN | (queued() != 0 ? POLLOUT : 0)), .revents = 0};
    const int ready = ::poll(&p, 1, left(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return;
    if ((p.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(fd_, queue_.data() + sent_, queued(), MSG_NOSIGNAL);
      if (n > 0) {
        tell(side::client, const_bytes(queue_).subspan(sent_, static_cast<std::size_t>(n)), false, false);
        sent_ += static_cast<std::size_t>(n);
        if (sent_ == queue_.size()) {
          queue_.clear();
          sent_ = 0;
        }
      }
    }
    if ((p.revents & (POLLIN | POLLERR | POLLHUP)) != 0) {
      const ssize_t n = ::recv(fd_, in.data(), in.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      ended_ = n <= 0;
      if (n > 0) tell(side::server, const_bytes(in).first(static_cast<std::size_t>(n)), false, false);
      if (ended_) tell(side::server, {}, false, n == 0, n < 0);
    }
  }
}

void live_stream::close_write() {
  ::shutdown(fd_, SHUT_WR);
  tell(side::client, {}, false, true);
}

summary_event live_stream::finish() {
  tcp_->finish(frame_, *analysis_);
  return totals_;
}

}  // namespace iwarp::dump
