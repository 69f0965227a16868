#include "tcp_glue/native_socket.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace iwarp::tcp_glue {

std::error_code to_std(const boost::system::error_code& ec) {
  if (ec.category() == boost::system::system_category()) return {ec.value(), std::system_category()};
  return ec;
}

std::error_code last_errno() noexcept { return {errno, std::system_category()}; }

result<int> open_socket(const boost::asio::ip::tcp& protocol) noexcept {
  const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol.protocol());
  if (fd < 0) return fail(last_errno());
  return fd;
}

result<int> accept_socket(int listener) noexcept {
  for (;;) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return fd;
    if (errno != EINTR) return fail(last_errno());
  }
}

}  // namespace iwarp::tcp_glue
