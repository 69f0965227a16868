#include "tools/common/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <thread>

#include "mpa/error.hpp"
#include "tools/common/failure.hpp"
#include "tools/common/stop.hpp"

namespace iwarp::tools {
namespace {

std::string reason_of(const verbs::connection_event& event, std::string_view otherwise) {
  if (event.reason && event.reason.category() == std::system_category()) return describe(event.reason);
  if (!event.reason_text.empty()) return event.reason_text;
  return event.reason ? describe(event.reason) : std::string(otherwise);
}

std::string with_words(std::string text, const_bytes private_data) {
  // Our own servers say why; others may send anything.
  const std::string_view said(reinterpret_cast<const char*>(private_data.data()), private_data.size());
  const bool words =
      !said.empty() && std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return words ? fmt::format("{}: {}", text, said) : text;
}

}  // namespace

std::string describe(const verbs::connection_event& event) {
  using kind = verbs::event_kind;
  switch (event.kind) {
    case kind::rejected:
      if (event.reason == mpa::errc::markers_refused) return reason_of(event, "markers refused");
      return with_words("rejected by the peer", event.private_data);
    case kind::unreachable:
      return reason_of(event, "unreachable");
    case kind::connect_error:
      return reason_of(event, "the peer is not an iWARP peer");
    case kind::disconnected:
      return reason_of(event, "the peer closed the connection");
    case kind::connect_request:
    case kind::established:
    case kind::receive_limit:
      break;
  }
  return std::string(verbs::to_string(event.kind));
}

session::session(const verbs::context& where, const verbs::queue_pair_options& queues)
    : context_(where),
      options_(queues),
      pd_(verbs::protection_domain::create(where)),
      cq_(require(
          verbs::completion_queue::create(where, queues.max_send_requests + std::max(1u, queues.max_receive_requests)),
          "cannot make a completion queue")),
      channel_(require(verbs::event_channel::create(where), "cannot make an event channel")) {
  renew();
}

void session::renew() {
  qp_ = {};
  // Drops what the queue pair before left.
  while (cq_.poll(polled_) > 0) {
  }
  polled_count_ = polled_next_ = 0;
  while (channel_.poll()) {
  }
  qp_ = require(verbs::queue_pair::create(pd_, cq_, cq_, channel_, options_), "cannot make a queue pair");
}

void session::connect(const peer& to, const verbs::connect_options& options, const std::function<void()>& ready) {
  peer_text_ = to.text;
  std::string why;
  for (std::size_t i = 0; i < to.addresses.size(); ++i) {
    if (i > 0) renew();
    ready();
    const std::string what = "cannot connect to " + to.text;
    require(qp_.connect(to.addresses[i], options), what);
    const auto event = wait_event(options.tcp_timeout + 2 * options.startup_timeout + std::chrono::seconds(5));
    if (event.kind == verbs::event_kind::established) {
      established_ = event;
      return;
    }
    // The first address is the one the user is told about: later ones are often of the other IP version.
    if (why.empty()) why = describe(event);
    if (event.kind != verbs::event_kind::unreachable) break;
  }
  throw failure(fmt::format("cannot connect to {}: {}", to.text, why));
}

void session::accept(const verbs::connection_event& request, const verbs::accept_options& options) {
  peer_text_ = tcp_glue::to_string(request.remote);
  require(qp_.accept(request.request, options), "cannot accept the connection");
  const auto event = wait_event(std::chrono::seconds(30));
  if (event.kind != verbs::event_kind::established) throw failure("connection set-up failed: " + describe(event));
  established_ = event;
}

verbs::connection_event session::wait_event(std::chrono::nanoseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    if (auto event = channel_.poll()) return *std::move(event);
    const int descriptor = channel_.descriptor();
    if (!wait_readable({&descriptor, 1}, end - std::chrono::steady_clock::now()))
      throw failure(fmt::format("no news of the connection with {} in time", peer_text_));
  }
}

void session::send(const_bytes message) {
  // Inline: the octets are copied, the element needs no key.
  const verbs::sge element{.address = const_cast<std::byte*>(message.data()),  // only read
                           .length = static_cast<std::uint32_t>(message.size()),
                           .key = {}};
  const verbs::send_request request{.id = send_id, .inline_data = true, .elements = {&element, 1}};
  post({&request, 1});
}

void session::post(std::span<const verbs::send_request> requests) {
  std::size_t posted = 0;
  if (auto done = qp_.post_send(requests, posted); !done) {
    if (done.error() == verbs::errc::not_connected) fail({.status = verbs::status::flushed});
    throw failure("cannot post to the send queue: " + describe(done.error()));
  }
}

void session::post(const verbs::receive_request& request) {
  require(qp_.post_receive(request), "cannot post to the receive queue");
}

bool session::refill() {
  polled_next_ = 0;
  polled_count_ = cq_.poll(polled_);
  return polled_count_ > 0;
}

verbs::completion session::next(std::chrono::nanoseconds limit, std::chrono::nanoseconds spin) {
  using clock = std::chrono::steady_clock;
  if (polled_next_ == polled_count_ && !refill()) {
    const auto start = clock::now();
    const auto spin_end = start + spin;
    while (!refill()) {
      if (stop_requested()) throw interrupted();
      if (clock::now() < spin_end) continue;
      cq_.arm();
      // One that came before arm() is not announced.
      if (refill()) break;
      const int descriptor = cq_.descriptor();
      const auto left = limit == no_limit ? no_limit : limit - (clock::now() - start);
      if (!wait_readable({&descriptor, 1}, left)) {
        if (refill()) break;
        throw failure(
            fmt::format("no answer from {} within {:.0f} s", peer_text_, std::chrono::duration<double>(limit).count()));
      }
      cq_.acknowledge();
    }
  }
  const verbs::completion& completed = polled_[polled_next_++];
  if (completed.status != verbs::status::success) fail(completed);
  return completed;
}

void session::fail(const verbs::completion& completed) {
  std::string text;
  if (completed.status != verbs::status::flushed) text = fmt::format("{}; ", verbs::to_string(completed.status));
  // A completion with an error and the end of the connection are two reports of one thing; the second has the reason.
  std::optional<verbs::connection_event> event;
  try {
    event = wait_event(std::chrono::seconds(10));
  } catch (const interrupted&) {
    throw;
  } catch (const failure&) {
    throw failure(fmt::format("connection with {} failed: {}no reason known", peer_text_, text));
  }
  if (text.empty() && event->kind == verbs::event_kind::disconnected && !event->reason)
    throw peer_closed(fmt::format("{} closed the connection", peer_text_));
  throw failure(fmt::format("connection with {} lost: {}{}", peer_text_, text, describe(*event)));
}

void session::disconnect() {
  if (!qp_.disconnect()) return;
  try {
    wait_event(std::chrono::seconds(10));
  } catch (const failure&) {
    // The destructor ends it.
  }
}

receive_buffers::receive_buffers(session& of, std::uint32_t count, std::uint32_t size)
    : session_(of),
      size_(size),
      memory_(std::size_t{count} * size),
      region_(require(verbs::memory_region::create(of.pd(), memory_, verbs::access::local_write),
                      "cannot register memory")) {}

void receive_buffers::post_all() {
  for (std::uint64_t id = 0; id < memory_.size() / size_; ++id) post(id);
}

void receive_buffers::post(std::uint64_t id) {
  const verbs::sge element = region_.element(id * size_, size_);
  session_.post({.id = id, .elements = {&element, 1}});
}

const_bytes receive_buffers::octets(const verbs::completion& received) const noexcept {
  assert(received.kind == verbs::completion_kind::receive);
  return const_bytes(memory_).subspan(static_cast<std::size_t>(received.id) * size_, received.length);
}

}  // namespace iwarp::tools
