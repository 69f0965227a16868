#include "verbs/async_connection_state.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

#include "verbs/async_error.hpp"

namespace iwarp::verbs::detail {
namespace {

namespace asio = boost::asio;

/// Taken off a completion queue at once.
constexpr std::size_t batch = 32;

}  // namespace

result<std::shared_ptr<async_connection_state>> async_connection_state::create(const asio::any_io_executor& io,
                                                                               const context& where,
                                                                               const protection_domain& pd,
                                                                               const queue_pair_options& options) {
  // Deep enough for every request to be complete at once: it cannot overflow. 64 bits, so that depths the queue pair
  // refuses do not wrap into ones it takes.
  const auto depth = options.max_send_requests + std::uint64_t{std::max(options.max_receive_requests, 1u)};
  if (depth > 2 * max_queue_depth) return fail(errc::invalid_depth);
  IWARP_TRY(auto queue, completion_queue::create(where, static_cast<std::uint32_t>(depth)));
  IWARP_TRY(auto channel, event_channel::create(where));
  IWARP_TRY(auto pair, queue_pair::create(pd, queue, queue, channel, options));
  try {
    return std::make_shared<async_connection_state>(io, std::move(queue), std::move(channel), std::move(pair));
  } catch (const boost::system::system_error& e) {  // the reactor has no room
    return fail(to_std(e.code()));
  }
}

async_connection_state::async_connection_state(const asio::any_io_executor& io, completion_queue queue,
                                               event_channel channel, queue_pair pair)
    : io_(io),
      queue_(std::move(queue)),
      channel_(std::move(channel)),
      pair_(std::move(pair)),
      queue_watch_(io, queue_.descriptor()),
      channel_watch_(io, channel_.descriptor()) {}

// Operations ----------------------------------------------------------------------------------------------------------

void async_connection_state::connect(event_operation* operation, const endpoint& peer, const connect_options& options) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::wrong_state));
  // One start-up at a time; the queue pair cannot tell one that this side already gave up.
  if (!starting_.empty()) return refuse(operation, make_error_code(errc::already_connected));
  take_completions();  // what an earlier connection left belongs to it
  take_events();
  if (end_reason_) {
    if (auto done = pair_.reset(); !done) return refuse(operation, done.error());
  }
  start(operation, pair_.connect(peer, options));
}

void async_connection_state::accept(event_operation* operation, const connection_request& request,
                                    const accept_options& options) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::wrong_state));
  if (!starting_.empty()) return refuse(operation, make_error_code(errc::already_connected));
  start(operation, pair_.accept(request, options));
}

void async_connection_state::start(event_operation* operation, const result<>& begun) {
  if (!begun) return refuse(operation, begun.error());
  end_reason_.reset();
  disconnecting_ = false;
  starting_.push_back(*operation);
  watch();
}

void async_connection_state::disconnect(event_operation* operation) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::not_connected));
  take_events();  // an end that came first keeps its reason
  if (!end_reason_) {
    if (auto begun = pair_.disconnect(); !begun) return refuse(operation, begun.error());
    disconnecting_ = true;
  }
  ending_.push_back(*operation);
  if (end_reason_) end(*end_reason_);
  watch();
}

void async_connection_state::wait_end(event_operation* operation) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::not_connected));
  take_events();
  ending_.push_back(*operation);
  if (end_reason_) end(*end_reason_);
  watch();
}

void async_connection_state::send(completion_operation* operation, send_request request) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::not_connected));
  if (const auto reason = ended()) return refuse_ended(operation, *reason);
  request.id = reinterpret_cast<std::uintptr_t>(operation);
  request.signaled = true;
  posted(operation, pair_.post_send(request));
}

void async_connection_state::receive(completion_operation* operation, std::span<const sge> elements) {
  const std::lock_guard lock(mutex_);
  if (!open_) return refuse(operation, make_error_code(errc::not_connected));
  if (const auto reason = ended()) return refuse_ended(operation, *reason);
  posted(operation, pair_.post_receive({.id = reinterpret_cast<std::uintptr_t>(operation), .elements = elements}));
}

void async_connection_state::refuse_ended(completion_operation* operation, const boost::system::error_code& reason) {
  completion nothing;
  operation->complete(reason, nothing);
}

void async_connection_state::posted(completion_operation* operation, const result<>& outcome) {
  if (!outcome) return refuse(operation, outcome.error());
  posted_.push_back(*operation);
  watch();
}

// What the stack tells
// -------------------------------------------------------------------------------------------------

void async_connection_state::on_completions() {
  const std::lock_guard lock(mutex_);
  queue_watch_.arrived();
  if (!open_) return;
  queue_.acknowledge();
  take_completions();
  watch();
}

void async_connection_state::on_events() {
  const std::lock_guard lock(mutex_);
  channel_watch_.arrived();
  if (!open_) return;
  take_events();
  watch();
}

/// Waits go on as long as somebody wants what they bring: without operations the executor's context has no work.
void async_connection_state::watch() {
  if (!posted_.empty() && !queue_watch_.waiting()) {
    queue_.arm();
    take_completions();  // what came before it was armed is not announced
    if (!posted_.empty()) queue_watch_.wait(shared_from_this(), &async_connection_state::on_completions);
  }
  const bool events_wanted = !starting_.empty() || !ending_.empty() || !flushed_.empty();
  if (events_wanted && !channel_watch_.waiting()) {
    channel_watch_.wait(shared_from_this(), &async_connection_state::on_events);
  } else if (!events_wanted && channel_watch_.waiting()) {
    channel_watch_.cancel();  // the event was found while completions were taken
  }
}

void async_connection_state::take_completions() {
  std::array<completion, batch> got;
  std::size_t count = 0;
  do {
    count = queue_.poll(got);
    for (auto& one : std::span(got).first(count)) {
      auto& operation = *reinterpret_cast<completion_operation*>(static_cast<std::uintptr_t>(one.id));
      posted_.erase(posted_.iterator_to(operation));
      complete(operation, one);
    }
  } while (count == got.size());
}

void async_connection_state::complete(completion_operation& operation, completion& what) {
  if (what.status != status::flushed) return operation.complete(to_asio(to_error_code(what.status)), what);
  // "Flushed" says nothing of why. The connection's own event does, and comes at about the same time.
  flushed_.push_back(operation);
  if (!end_reason_) take_events();
  if (end_reason_) end(*end_reason_);
}

void async_connection_state::take_events() {
  while (auto event = channel_.poll()) take_event(std::move(*event));
}

void async_connection_state::take_event(connection_event&& event) {
  switch (event.kind) {
    case event_kind::established:
      start_event_ = std::move(event);
      return complete_all(starting_, {});
    case event_kind::rejected:
    case event_kind::unreachable:
    case event_kind::connect_error: {
      auto reason = event.reason;
      if (!reason) reason = to_std(asio::error::connection_refused);
      start_event_ = std::move(event);
      complete_all(starting_, to_asio(reason));
      return end(reason);
    }
    case event_kind::disconnected:
      return end(event.reason);
    case event_kind::connect_request:
    case event_kind::receive_limit:
      return;  // no listener and no shared receive queue has this channel
  }
}

void async_connection_state::end(const std::error_code& reason) {
  end_reason_ = reason;
  complete_all(ending_, to_asio(reason));
  complete_all(flushed_, *ended());
}

/// What a transfer completes with that the end of the connection overtook, or that was begun after it.
std::optional<boost::system::error_code> async_connection_state::ended() {
  if (!end_reason_) take_events();
  if (!end_reason_) return std::nullopt;
  if (*end_reason_) return to_asio(*end_reason_);
  // After a graceful end: what the peer will never send is the end of the stream; what this side gave up is aborted.
  return disconnecting_ ? asio::error::operation_aborted : make_error_code(asio::error::eof);
}

// The end
// --------------------------------------------------------------------------------------------------------------

void async_connection_state::close() {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  open_ = false;
  take_completions();  // what was carried out before this call succeeded
  queue_watch_.release();
  channel_watch_.release();
  pair_ = {};  // from here on no posted memory is touched
  complete_all(posted_, asio::error::operation_aborted);
  complete_all(flushed_, asio::error::operation_aborted);
  complete_all(starting_, asio::error::operation_aborted);
  complete_all(ending_, asio::error::operation_aborted);
}

void async_connection_state::abandon() {
  async_operation_list<completion> posted, flushed;
  async_operation_list<connection_event> starting, ending;
  queue_pair pair;
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
    posted.swap(posted_);
    flushed.swap(flushed_);
    starting.swap(starting_);
    ending.swap(ending_);
    pair = std::move(pair_);
  }
  pair = {};
  abandon_all(posted);
  abandon_all(flushed);
  abandon_all(starting);
  abandon_all(ending);
}

connection_event async_connection_state::start_event() const {
  const std::lock_guard lock(mutex_);
  return start_event_;
}

}  // namespace iwarp::verbs::detail
