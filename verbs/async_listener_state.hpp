// Internal to verbs.
// What an async_listener is behind its templates: a listener with its own event channel, and the operations that wait
// for a Request.
// Threading: every function from any thread; one mutex, taken before the progress domain's.  Time: none.
// I/O: the context's.
#pragma once

#include <memory>
#include <mutex>

#include "verbs/async_operation.hpp"
#include "verbs/async_watch.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/listener.hpp"

namespace iwarp::verbs::detail {

using request_operation = async_operation<connection_event>;

class async_listener_state : public std::enable_shared_from_this<async_listener_state> {
 public:
  static result<std::shared_ptr<async_listener_state>> create(const boost::asio::any_io_executor& io,
                                                              const context& where, const endpoint& at,
                                                              const listen_options& options);
  async_listener_state(const boost::asio::any_io_executor& io, const context& where, event_channel channel,
                       listener door);

  /// Takes the operation over.
  void next_request(request_operation* operation);
  /// Frees the port; what is under way completes with operation_aborted.
  void close();
  /// The executor's context is being destroyed: handlers are destroyed, not called.
  void abandon();

  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return io_; }
  [[nodiscard]] const context& where() const noexcept { return context_; }
  [[nodiscard]] endpoint local() const { return local_; }

 private:
  void on_events();
  void serve();

  boost::asio::any_io_executor io_;
  context context_;
  std::mutex mutex_;
  event_channel channel_;
  listener listener_;
  endpoint local_;
  descriptor_watch<async_listener_state> watch_;
  bool open_ = true;
  async_operation_list<connection_event> waiting_;
};

}  // namespace iwarp::verbs::detail
