#include "verbs/async_listener_state.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace iwarp::verbs::detail {

namespace asio = boost::asio;

result<std::shared_ptr<async_listener_state>> async_listener_state::create(const asio::any_io_executor& io,
                                                                           const context& where, const endpoint& at,
                                                                           const listen_options& options) {
  IWARP_TRY(auto channel, event_channel::create(where));
  IWARP_TRY(auto door, listener::create(channel, at, options));
  try {
    return std::make_shared<async_listener_state>(io, where, std::move(channel), std::move(door));
  } catch (const boost::system::system_error& e) {  // the reactor has no room
    return fail(to_std(e.code()));
  }
}

async_listener_state::async_listener_state(const asio::any_io_executor& io, const context& where, event_channel channel,
                                           listener door)
    : io_(io),
      context_(where),
      channel_(std::move(channel)),
      listener_(std::move(door)),
      local_(listener_.local()),
      watch_(io, channel_.descriptor()) {}

void async_listener_state::next_request(request_operation* operation) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::wrong_state));
  waiting_.push_back(*operation);
  serve();
}

void async_listener_state::on_events() {
  const std::lock_guard lock(mutex_);
  watch_.arrived();
  if (open_) serve();
}

/// First come, first served. Requests nobody waits for stay in the channel.
void async_listener_state::serve() {
  while (!waiting_.empty()) {
    auto event = channel_.poll();
    if (!event) break;
    if (event->kind != event_kind::connect_request) continue;
    auto& operation = waiting_.front();
    waiting_.pop_front();
    operation.complete({}, *event);
  }
  if (!waiting_.empty() && !watch_.waiting()) {
    watch_.wait(shared_from_this(), &async_listener_state::on_events);
  } else if (waiting_.empty() && watch_.waiting()) {
    watch_.cancel();  // without operations the executor's context has no work
  }
}

void async_listener_state::close() {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  open_ = false;
  watch_.release();
  listener_ = {};
  complete_all(waiting_, asio::error::operation_aborted);
}

void async_listener_state::abandon() {
  async_operation_list<connection_event> waiting;
  listener door;
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    waiting.swap(waiting_);
    door = std::move(listener_);
  }
  door = {};
  abandon_all(waiting);
}

}  // namespace iwarp::verbs::detail
