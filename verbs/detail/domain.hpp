// Internal to verbs.
// A progress domain (design.md 4): one lock, one io_context, in automatic mode one background thread, and the
// connections pinned to it. Whoever posts or polls tries the lock and, if he gets it, runs the engines; else the holder
// does the work before it lets go.
// Lock order: queue_pair_state's control_mutex_ and post_mutex_, listener_state's gate; domain; then completion queue,
// receive queue, event channel, queue_pair_state's connection_mutex_, listener_state's pending_mutex_, acceptor. Only
// receive_queue::post publishes work (no lock) from inside another lock. No two domains' locks are held together, but
// in revoke_from(), which says how.
// Threading: as said at each function.  Time: std::chrono::steady_clock.  I/O: through its connections.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/types.hpp"
#include "mpa/rx_memory.hpp"
#include "mpa/tx_batch.hpp"
#include "verbs/detail/domain_lock.hpp"

namespace iwarp::verbs::detail {

class connection;
class queue_pair_state;

inline constexpr std::size_t max_domains = 64;  ///< of one context

class domain {
 public:
  /// `io` null: owns an io_context and a thread that runs it.
  domain(boost::asio::io_context* io, std::chrono::seconds peer_timeout);
  ~domain();
  void start();
  /// Ends the thread, resets every connection, drops what waits. Nobody may use the domain afterwards.
  void shutdown();

  /// Holds the lock; on release does what was published meanwhile.
  class turn {
   public:
    explicit turn(domain& d) noexcept : domain_(d) { domain_.lock_.lock(); }
    ~turn() { domain_.leave(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    domain& domain_;
  };

  /// Any thread, no lock needed: this queue pair has new work.
  void publish(queue_pair_state& qp) noexcept;
  /// Any thread, no lock held: runs what was published, or leaves it to the lock's holder.
  void run_published() noexcept {
    if (lock_.try_lock()) leave();
  }
  /// A completion queue was polled and wanted more: reads from connections on the caller's thread.
  void poll() noexcept;
  /// Any thread: nobody refers to this connection any more. It is destroyed under the lock, since its engine gives
  /// buffers back to the domain.
  void bury(connection* c) noexcept;
  /// Any thread, no lock needed: runs run_published() on the domain's io_context.
  void run_published_later();

  /// The application is going to wait for a descriptor: the background thread must serve from now on.
  void stop_polling() noexcept;

  // Under the lock.
  void add(std::shared_ptr<connection> c);
  void remove(connection& c) noexcept;
  [[nodiscard]] const std::vector<std::shared_ptr<connection>>& connections() const noexcept { return connections_; }
  /// The polling threads serve the connections themselves: no need to wait for readiness. True only while the
  /// background thread looks every millisecond whether they still do.
  [[nodiscard]] bool served_by_pollers() const noexcept {
    return watching_ && connections_.size() <= direct_connections;
  }
  /// Octets of `memory` that connections here have queued by reference are copied.
  void detach_queued(const_bytes memory) { batches_.detach(memory); }
  /// Has this domain, whose lock is not held, do detach_queued() and returns when it was done. Meanwhile `held`, whose
  /// lock is held, does what other domains want of it in the same way, so that two domains never wait for each other.
  void revoke_from(domain& held, const_bytes memory) noexcept;
  [[nodiscard]] mpa::rx_memory& rx_memory() noexcept { return rx_memory_; }
  [[nodiscard]] mpa::tx_batch_pool& batches() noexcept { return batches_; }

  /// 0: none.
  [[nodiscard]] std::chrono::seconds peer_timeout() const noexcept { return peer_timeout_; }
  [[nodiscard]] boost::asio::io_context& io() noexcept { return *io_; }
  [[nodiscard]] bool manual() const noexcept { return own_ == nullptr; }
  [[nodiscard]] static std::chrono::nanoseconds now() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  domain(const domain&) = delete;
  domain& operator=(const domain&) = delete;

 private:
  /// Up to so many connections a poll tries to read each one; beyond, it asks the kernel which are readable.
  static constexpr std::size_t direct_connections = 8;
  /// Polls in a row, without arming a queue, after which the application counts as busily polling.
  static constexpr std::uint32_t polls_to_take_over = 32;
  static constexpr auto poller_watch = std::chrono::milliseconds(1);

  /// One revoke_from() that waits; lives on its caller's stack until `done`.
  struct revocation {
    const_bytes memory;
    std::atomic<bool> done{false};
    revocation* next = nullptr;
  };

  void leave() noexcept;
  [[nodiscard]] bool work_left() const noexcept {
    return published_.load() != nullptr || buried_.load() != nullptr || revocations_.load() != nullptr;
  }
  void do_work_left() noexcept;
  void drain_published() noexcept;
  void drain_buried() noexcept;
  void drain_revocations() noexcept;
  void run();
  void watch_pollers();
  void arm_all() noexcept;

  const std::chrono::seconds peer_timeout_;
  std::unique_ptr<boost::asio::io_context> own_;
  boost::asio::io_context* io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::thread thread_;

  domain_lock lock_;
  // Stacks that anybody pushes to and the lock's holder empties before he lets go.
  std::atomic<queue_pair_state*> published_{nullptr};
  std::atomic<connection*> buried_{nullptr};
  std::atomic<revocation*> revocations_{nullptr};
  std::vector<std::shared_ptr<connection>> connections_;
  std::size_t next_polled_ = 0;
  mpa::rx_memory rx_memory_;
  mpa::tx_batch_pool batches_;

  std::atomic<bool> stopping_{false};
  std::atomic<bool> polling_{false};  // the application polls busily
  bool watching_ = false;             // under the lock: the background thread has seen that, and looks after it
  std::atomic<std::uint32_t> polls_{0};
  std::atomic<std::uint32_t> polls_since_wait_{0};
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;
};

}  // namespace iwarp::verbs::detail
