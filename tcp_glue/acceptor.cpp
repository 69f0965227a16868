#include "tcp_glue/acceptor.hpp"

#include "tcp_glue/kernel_transport.hpp"

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <mutex>

namespace iwarp::tcp_glue {
namespace {

using tcp = boost::asio::ip::tcp;

constexpr auto rest = std::chrono::milliseconds(100);
// Connections taken in one turn, so that a flood of them leaves the executor to others.
constexpr int batch = 16;

}  // namespace

// Outlives its acceptor as long as a wait is pending.
//
//   idle --start/resume--> waiting --readable--> accepting --short of something--> resting
//    ^                        ^                      |                                |
//    +-- paused: nothing -----+----- none left ------+--------- 100 ms later --------+
class acceptor::listener : public std::enable_shared_from_this<listener> {
 public:
  explicit listener(const boost::asio::any_io_executor& executor)
      : executor_(executor), socket_(executor), timer_(executor) {}

  std::error_code open(const endpoint& where, const listen_options& options) {
    executor_for_next_ = options.executor_for_next;
    accept_one_ = options.accept_one;
    const bool adopted = options.socket >= 0;
    const auto fd = adopted ? result<int>(options.socket) : open_socket(where.protocol());
    if (!fd) return fd.error();
    boost::system::error_code ec;
    socket_.assign(where.protocol(), *fd, ec);
    if (ec) {
      ::close(*fd);
      return to_std(ec);
    }
    socket_.non_blocking(true, ec);
    if (!ec && !adopted) {
      socket_.set_option(tcp::acceptor::reuse_address(true), ec);
      // Said either way: the system's default (net.ipv6.bindv6only) must not decide who can connect.
      if (!ec && where.address().is_v6()) socket_.set_option(boost::asio::ip::v6_only(options.v6_only), ec);
      if (!ec) socket_.bind(where, ec);
    }
    if (!ec) socket_.listen(options.backlog > 0 ? options.backlog : tcp::acceptor::max_listen_connections, ec);
    if (!ec) where_ = socket_.local_endpoint(ec);
    return ec ? to_std(ec) : std::error_code{};
  }

  void start(accept_handler handler) {
    const std::lock_guard lock(mutex_);
    assert(!handler_);
    handler_ = std::make_shared<accept_handler>(std::move(handler));
    wait();
  }

  void pause() noexcept {
    const std::lock_guard lock(mutex_);
    paused_ = true;
  }

  void resume() {
    const std::lock_guard lock(mutex_);
    paused_ = false;
    wait();
  }

  void close() noexcept {
    std::shared_ptr<accept_handler> dropped;  // destroyed after the lock: it may own what locks again
    const std::lock_guard lock(mutex_);
    boost::system::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    dropped.swap(handler_);
  }

  [[nodiscard]] endpoint where() const noexcept { return where_; }

  [[nodiscard]] counters totals() const noexcept {
    const std::lock_guard lock(mutex_);
    return totals_;
  }

 private:
  // Under the lock. At most one wait, rest or turn of accepting exists at a time.
  void wait() {
    if (busy_ || paused_ || !handler_) return;
    busy_ = true;
    socket_.async_wait(tcp::acceptor::wait_read,
                       [self = shared_from_this()](const boost::system::error_code& ec) { self->accept_some(ec); });
  }

  void rest_a_while() {
    ++totals_.deferred;
    timer_.expires_after(rest);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) { self->go_on(); });
  }

  void go_on() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    wait();
  }

  void accept_some(const boost::system::error_code& ec) {
    for (int i = 0; !ec && i < batch; ++i) {
      std::unique_lock lock(mutex_);
      if (paused_ || !handler_) break;
      const auto fd = accept_one_(socket_.native_handle());
      if (!fd) {
        const int reason = fd.error().value();
        if (reason == EAGAIN || reason == EWOULDBLOCK) break;
        // The peer is gone already, or the network reported an error of its connection (accept(2) lists them).
        if (reason == ECONNABORTED || reason == EPROTO || reason == ENETDOWN || reason == ENOPROTOOPT ||
            reason == EHOSTDOWN || reason == ENONET || reason == EHOSTUNREACH || reason == ENETUNREACH ||
            reason == EPERM) {
          ++totals_.aborted;
          continue;
        }
        // EMFILE, ENFILE, ENOBUFS, ENOMEM, and anything unheard of: the connection stays readable, so waiting for
        // readability would spin.
        rest_a_while();
        return;
      }
      const auto handler = handler_;
      lock.unlock();  // the handler may call close(), or take locks under which others do
      auto made = adopt(*fd);
      lock.lock();
      ++(made ? totals_.accepted : totals_.aborted);
      lock.unlock();
      if (made) (*handler)(std::move(*made));
    }
    go_on();
  }

  result<std::unique_ptr<transport>> adopt(int fd) {
    tcp::socket socket(executor_for_next_ ? executor_for_next_() : executor_);
    boost::system::error_code ec;
    socket.assign(where_.protocol(), fd, ec);
    if (ec) {
      ::close(fd);
      return fail(to_std(ec));
    }
    return kernel_transport::make(std::move(socket));
  }

  mutable std::mutex mutex_;
  boost::asio::any_io_executor executor_;
  std::function<boost::asio::any_io_executor()> executor_for_next_;
  tcp::acceptor socket_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<accept_handler> handler_;  // shared, since close() may come while it runs; null: not open
  endpoint where_;
  result<int> (*accept_one_)(int) noexcept = nullptr;
  counters totals_;
  bool paused_ = false;
  bool busy_ = false;
};

acceptor::acceptor(std::shared_ptr<listener> made) noexcept : listener_(std::move(made)) {}

acceptor::~acceptor() { close(); }

result<std::unique_ptr<acceptor>> acceptor::open(boost::asio::any_io_executor executor, const endpoint& where,
                                                 const listen_options& options) {
  auto made = std::make_shared<listener>(executor);
  if (const auto ec = made->open(where, options)) return fail(ec);
  return std::unique_ptr<acceptor>(new acceptor(std::move(made)));
}

void acceptor::start(accept_handler handler) { listener_->start(std::move(handler)); }
void acceptor::pause() noexcept { listener_->pause(); }
void acceptor::resume() { listener_->resume(); }
void acceptor::close() noexcept { listener_->close(); }
endpoint acceptor::local_endpoint() const noexcept { return listener_->where(); }
acceptor::counters acceptor::totals() const noexcept { return listener_->totals(); }

}  // namespace iwarp::tcp_glue
