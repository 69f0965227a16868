// Internal to verbs.
// What an async_connection is behind its templates: a queue pair with its own completion queue and event channel, and
// the operations that wait for either.
// Threading: every function from any thread; one mutex, taken before the progress domain's.  Time: none.
// I/O: that of the queue pair's functions.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>

#include "verbs/async_operation.hpp"
#include "verbs/async_watch.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/queue_pair.hpp"

namespace iwarp::verbs::detail {

/// One posted request. Its address is the request's id.
using completion_operation = async_operation<completion>;
/// Start-up or end of the connection.
using event_operation = async_operation<connection_event>;

class async_connection_state : public std::enable_shared_from_this<async_connection_state> {
 public:
  static result<std::shared_ptr<async_connection_state>> create(const boost::asio::any_io_executor& io,
                                                                const context& where, const protection_domain& pd,
                                                                const queue_pair_options& options);
  async_connection_state(const boost::asio::any_io_executor& io, completion_queue queue, event_channel channel,
                         queue_pair pair);

  // Each takes the operation over.
  void connect(event_operation* operation, const endpoint& peer, const connect_options& options);
  void accept(event_operation* operation, const connection_request& request, const accept_options& options);
  void disconnect(event_operation* operation);
  void wait_end(event_operation* operation);
  void send(completion_operation* operation, send_request request);
  void receive(completion_operation* operation, std::span<const sge> elements);

  /// Ends the connection; what is under way completes with operation_aborted.
  void close();
  /// The executor's context is being destroyed: handlers are destroyed, not called.
  void abandon();

  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return io_; }
  [[nodiscard]] connection_event start_event() const;
  [[nodiscard]] queue_pair& pair() noexcept { return pair_; }

 private:
  void start(event_operation* operation, const result<>& begun);
  void posted(completion_operation* operation, const result<>& outcome);
  void on_completions();
  void on_events();
  void take_completions();
  void take_events();
  void take_event(connection_event&& event);
  void complete(completion_operation& operation, completion& what);
  void end(const std::error_code& reason);
  std::optional<boost::system::error_code> ended();
  static void refuse_ended(completion_operation* operation, const boost::system::error_code& reason);
  void watch();

  boost::asio::any_io_executor io_;
  mutable std::mutex mutex_;
  completion_queue queue_;
  event_channel channel_;
  queue_pair pair_;
  descriptor_watch<async_connection_state> queue_watch_;
  descriptor_watch<async_connection_state> channel_watch_;
  bool open_ = true;
  bool disconnecting_ = false;                                // this side asked for the end
  connection_event start_event_;                              // how start-up ended
  std::optional<std::error_code> end_reason_;                 // the connection is over, or did not come about
  async_operation_list<completion> posted_;                   // in the queue pair
  async_operation_list<completion> flushed_;                  // over; the reason has still to come
  async_operation_list<connection_event> starting_, ending_;  // wait for the event
};

}  // namespace iwarp::verbs::detail
