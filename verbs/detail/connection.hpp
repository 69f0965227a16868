// Internal to verbs.
// One TCP connection: its transport, engine, driver and timer. Lives in its domain's list until it is closed; a queue
// pair or a listener may look at it meanwhile.
// Threading: everything under the domain's lock, except the readiness handlers, which take it, and the end of its last
// shared_ptr, which may be anywhere: domain::bury() sees to the rest.
// Time: steady clock.  I/O: the transport's.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "rdmap/stream.hpp"
#include "tcp_glue/driver.hpp"
#include "tcp_glue/transport.hpp"
#include "verbs/detail/domain.hpp"

namespace iwarp::verbs::detail {

class listener_state;
class queue_pair_state;

class connection final : public tcp_glue::readiness_handler, public std::enable_shared_from_this<connection> {
 public:
  static std::shared_ptr<connection> make(std::shared_ptr<domain> where, std::unique_ptr<tcp_glue::transport> transport,
                                          const rdmap::stream_options& options);
  ~connection();

  [[nodiscard]] rdmap::stream& stream() noexcept { return stream_; }
  [[nodiscard]] domain& home() noexcept { return *domain_; }
  [[nodiscard]] const std::shared_ptr<domain>& shared_home() const noexcept { return domain_; }
  /// As they were when TCP was opened: they can be asked for when it is closed.
  [[nodiscard]] const tcp_glue::endpoint& local() const noexcept { return local_; }
  [[nodiscard]] const tcp_glue::endpoint& remote() const noexcept { return remote_; }
  /// TCP is gone, or the context.
  [[nodiscard]] bool closed() const noexcept { return dropped_ || driver_.closed(); }

  /// After anything was done to the stream: sends, tells events, waits for what comes next.
  void service(timestamp now) noexcept;
  /// Reads without waiting, then service().
  void poll(timestamp now) noexcept;
  /// Waits for whatever is wanted and not waited for yet, unless polling threads look after it.
  void arm() noexcept;
  /// The context is going away.
  void drop() noexcept;

  void on_readable(std::error_code ec) noexcept override;
  void on_writable(std::error_code ec) noexcept override;
  void on_lost(std::error_code reason) noexcept override;

  queue_pair_state* owner = nullptr;   ///< told of events; null: nobody, or the listener
  listener_state* listener = nullptr;  ///< until the Request is answered
  std::size_t index_in_domain = 0;
  connection* next_buried = nullptr;  // domain's

 private:
  connection(std::shared_ptr<domain> where, std::unique_ptr<tcp_glue::transport> transport,
             const rdmap::stream_options& options);
  void read(timestamp now) noexcept;
  void tell_events() noexcept;
  void arm_timer() noexcept;
  void watch_peer() noexcept;

  std::shared_ptr<domain> domain_;
  std::unique_ptr<tcp_glue::transport> transport_;
  const tcp_glue::endpoint local_;
  const tcp_glue::endpoint remote_;
  rdmap::stream stream_;
  tcp_glue::driver driver_;
  boost::asio::steady_timer timer_;
  timestamp timer_at_ = never;
  boost::asio::steady_timer peer_watch_;
  timestamp unanswered_since_ = never;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool lost_armed_ = false;
  bool more_to_write_ = false;
  bool dropped_ = false;
};

}  // namespace iwarp::verbs::detail
