#include "tcp_glue/connector.hpp"

#include "tcp_glue/kernel_transport.hpp"
#include "tcp_glue/native_socket.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <mutex>

namespace iwarp::tcp_glue {
namespace {

using tcp_socket = boost::asio::ip::tcp::socket;

// Beyond this the kernel gave up long ago, and the arithmetic of timers stays far from overflow.
constexpr duration longest_timeout = std::chrono::hours(24);

std::error_code open_and_bind(tcp_socket& socket, const connect_request& request) {
  const auto protocol = request.remote.protocol();
  const auto fd = open_socket(protocol);
  if (!fd) return fd.error();
  boost::system::error_code ec;
  socket.assign(protocol, *fd, ec);
  if (ec) {
    ::close(*fd);
    return to_std(ec);
  }
  if (request.local) {
    // Source ports may wait in TIME-WAIT from earlier connections; binding to them is safe for a connecting socket.
    socket.set_option(boost::asio::socket_base::reuse_address(true), ec);
    if (!ec) socket.bind(*request.local, ec);
  }
  return ec ? to_std(ec) : std::error_code{};
}

result<std::unique_ptr<transport>> into_transport(tcp_socket socket) {
  boost::system::error_code ec;
  const auto local = socket.local_endpoint(ec);
  if (ec) return fail(to_std(ec));
  const auto remote = socket.remote_endpoint(ec);
  if (ec) return fail(to_std(ec));
  if (local == remote) {
    // Simultaneous open with itself. Reset it, or the port would sit in TIME-WAIT when the real listener comes.
    socket.set_option(boost::asio::socket_base::linger(true, 0), ec);
    socket.close(ec);
    return fail(std::make_error_code(std::errc::connection_refused));
  }
  return kernel_transport::make(std::move(socket));
}

}  // namespace

class connect_attempt::operation : public std::enable_shared_from_this<operation> {
 public:
  operation(const boost::asio::any_io_executor& executor, connect_handler handler)
      : socket_(executor), timer_(executor), handler_(std::move(handler)) {}

  void start(const connect_request& request) {
    const std::lock_guard lock(mutex_);
    if (const auto ec = open_and_bind(socket_, request)) {
      verdict_ = ec;
      boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->finish({}); });
      return;
    }
    if (request.timeout < longest_timeout) {
      timer_.expires_after(request.timeout);
      timer_.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
        if (!ec) self->give_up(std::make_error_code(std::errc::timed_out));
      });
    }
    socket_.async_connect(request.remote, [self = shared_from_this()](const boost::system::error_code& ec) {
      self->finish(ec ? to_std(ec) : std::error_code{});
    });
  }

  // Only decides; the handler of async_connect, which close() sets off, reports.
  void give_up(std::error_code verdict) noexcept {
    const std::lock_guard lock(mutex_);
    if (done_ || verdict_) return;
    verdict_ = verdict;
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void finish(std::error_code ec) {
    std::unique_lock lock(mutex_);
    done_ = true;
    if (verdict_) ec = verdict_;
    timer_.cancel();
    auto socket = std::move(socket_);
    const auto handler = std::move(handler_);
    lock.unlock();  // the handler may take locks under which others call cancel()

    std::unique_ptr<transport> opened;
    if (!ec) {
      auto made = into_transport(std::move(socket));
      if (made)
        opened = std::move(*made);
      else
        ec = made.error();
    }
    handler(ec, std::move(opened));
  }

  std::mutex mutex_;
  tcp_socket socket_;
  boost::asio::steady_timer timer_;
  connect_handler handler_;
  std::error_code verdict_;  // decided here: cancelled, timed out, could not be opened
  bool done_ = false;
};

void connect_attempt::cancel() noexcept {
  if (operation_) operation_->give_up(std::make_error_code(std::errc::operation_canceled));
}

connect_attempt async_connect(boost::asio::any_io_executor executor, const connect_request& request,
                              connect_handler handler) {
  auto operation = std::make_shared<connect_attempt::operation>(executor, std::move(handler));
  operation->start(request);
  return connect_attempt(std::move(operation));
}

}  // namespace iwarp::tcp_glue
