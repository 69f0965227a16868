// Internal to verbs.
// The state behind a queue pair: its rings, and the stream's view of them (rdmap::consumer).
// Threading: posting under post_mutex_; connecting and ending under control_mutex_; consumer calls, service() and
// events under the domain's lock. Lock order: control_mutex_, post_mutex_, domain. Time: none.  I/O: none of its own.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rdmap/consumer.hpp"
#include "rdmap/stream.hpp"
#include "tcp_glue/connector.hpp"
#include "verbs/detail/completion_queue_state.hpp"
#include "verbs/detail/connection.hpp"
#include "verbs/detail/context_state.hpp"
#include "verbs/detail/event_channel_state.hpp"
#include "verbs/detail/receive_queue.hpp"
#include "verbs/queue_pair.hpp"

namespace iwarp::verbs::detail {

class queue_pair_state final : public rdmap::consumer {
 public:
  queue_pair_state(std::shared_ptr<protection_domain_state> pd, std::shared_ptr<completion_queue_state> send_cq,
                   std::shared_ptr<completion_queue_state> receive_cq, std::shared_ptr<event_channel_state> channel,
                   std::shared_ptr<receive_queue> receives, bool shared, const queue_pair_options& options);
  ~queue_pair_state();

  result<> post_send(std::span<const send_request> requests, std::size_t& posted);
  result<> post_send_all(std::span<const send_request> requests);
  result<> post_receive(std::span<const receive_request> requests, std::size_t& posted);
  result<> connect(const endpoint& peer, const connect_options& options);
  /// `where`: the context of the listener.
  result<> accept(const context_state& where, const std::shared_ptr<connection>& c, const accept_options& options);
  result<> disconnect();
  void abort() noexcept;
  result<> reset();
  /// Ends everything; nothing of this object is used afterwards.
  void destroy() noexcept;

  /// Errors: invalid_read_depth, invalid_argument.
  static result<> check(const connection_options& options);
  static rdmap::stream_options stream_options_for(const connection_options& options, std::uint8_t revision);

  [[nodiscard]] qp_state state() const noexcept { return phase_.load(); }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Calls `look` with the connection under its domain's lock; does nothing without one.
  template <class Look>
  void with_connection(Look&& look) {
    if (const auto c = current(); c != nullptr) {
      const domain::turn here(c->home());
      look(*c);
    }
  }

  // Under the domain's lock.
  /// Gives the stream what was posted; called by `here`, the domain whose lock is held.
  void service(domain& here) noexcept;
  /// A completion was lost since the last call: the queue pair must end.
  bool take_overflow() noexcept { return overflow_.load(std::memory_order_relaxed) && overflow_.exchange(false); }
  void stream_event(rdmap::stream_event event) noexcept;

  /// Under the completion queue's lock: completions with so many send requests behind them were polled.
  void free_send_slots(std::uint32_t slots) noexcept { send_freed_.fetch_add(slots, std::memory_order_release); }
  /// Under the receive queue's lock: a receive was posted. Returns the domain to run.
  domain* publish_receive() noexcept;

  // Used by domain alone.
  std::atomic<bool> published{false};
  queue_pair_state* next_published = nullptr;

  // rdmap::consumer
  rdmap::access_result access_remote(stag key, std::uint64_t offset, std::size_t size,
                                     rdmap::remote_right right) noexcept override;
  rdmap::access_result access_local(stag key, void* address, std::size_t size, bool write) noexcept override;
  rdmap::access_result access_receive(stag key, void* address, std::size_t size) noexcept override;
  void release(void* pin) noexcept override { regions_.unpin(*static_cast<region*>(pin)); }
  rdmap::access_error invalidate_remote(stag key) noexcept override;
  rdmap::access_error invalidate_local(stag key) noexcept override;
  rdmap::receive_slot* take_receive() noexcept override { return receives_->take(this); }
  void send_completed(const rdmap::work_request& request, rdmap::wr_status status) noexcept override;
  void receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& outcome) noexcept override;

 private:
  /// A connect() under way: shared with the TCP connect, which outlives neither its queue pair's wish nor the domain.
  struct connecting {
    queue_pair_state* owner = nullptr;  // null: given up. Under the domain's lock
    std::shared_ptr<domain> home;
    endpoint peer;
    connect_options options;
    std::vector<std::byte> private_data;
    tcp_glue::connect_attempt attempt;
  };

  [[nodiscard]] std::shared_ptr<connection> current() const noexcept;
  [[nodiscard]] std::shared_ptr<connecting> attempt() const noexcept;
  void set_attempt(std::shared_ptr<connecting> attempt) noexcept;
  /// Under the lock of the domain of the one it replaces, and of `c`.
  void set_current(std::shared_ptr<connection> c) noexcept;
  /// A connection that has ended stays for questions until the next one: lets go of it. Wrong_state if it has not.
  result<> leave_connection() noexcept;
  result<> post_one(const send_request& request) noexcept;
  result<> post_batch(std::span<const send_request> requests, std::size_t& posted, bool all_or_none);
  static void open_tcp(const std::shared_ptr<connecting>& attempt);
  void tcp_open(const std::shared_ptr<connecting>& attempt, std::error_code ec,
                std::unique_ptr<tcp_glue::transport> transport);
  void take_over(std::shared_ptr<connection> c);
  bool fall_back() noexcept;
  bool give_up_connecting() noexcept;
  /// What the peer's Request allows of `options`.
  static result<> check_answer(connection& c, const accept_options& options);
  rdmap::access_result check_local(stag key, const protection_domain_state* pd, void* address, std::size_t size,
                                   bool write) noexcept;
  void revoke(region& r) noexcept;
  void flush_unserved() noexcept;
  void flush_receives() noexcept;
  void push(completion_queue_state& queue, const completion_entry& entry) noexcept;
  connection_event make_event(event_kind kind) noexcept;
  void tell(connection_event event) noexcept;

  std::shared_ptr<protection_domain_state> pd_;
  std::shared_ptr<completion_queue_state> send_cq_;
  std::shared_ptr<completion_queue_state> receive_cq_;
  std::shared_ptr<event_channel_state> channel_;
  std::shared_ptr<receive_queue> receives_;
  const bool shared_receives_;
  const queue_pair_options options_;
  const std::uint32_t number_;
  region_table& regions_;

  std::atomic<qp_state> phase_{qp_state::idle};
  std::mutex control_mutex_;
  mutable std::mutex connection_mutex_;  // leaf: guards the two pointers below alone
  std::shared_ptr<connection> connection_;
  std::shared_ptr<connecting> connecting_;
  std::atomic<domain*> home_{nullptr};   // of connection_, for posting
  std::atomic<bool> destroying_{false};  // nobody is told any more

  std::mutex post_mutex_;
  rdmap::send_ring ring_;
  std::uint64_t posted_private_ = 0;          // under post_mutex_
  std::atomic<std::uint64_t> posted_{0};      // published
  std::atomic<std::uint64_t> send_freed_{0};  // slots given back
  std::uint32_t unsignaled_run_ = 0;          // completed without a completion since the last one
  std::uint64_t flushed_unserved_ = 0;        // under post_mutex_: without a connection all below have been completed
  std::uint64_t submitted_ = 0;               // given to the stream; under the domain's lock
  std::atomic<bool> overflow_{false};
};

}  // namespace iwarp::verbs::detail
