// The half of a queue pair that has to do with its connection: how it comes to be, what becomes of it, how it ends.
#include <algorithm>
#include <cassert>

#include "verbs/detail/listener_state.hpp"
#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

namespace {

/// Stands in for the consumer of a stream that lingers after its queue pair is gone.
class no_consumer final : public rdmap::consumer {
 public:
  rdmap::access_result access_remote(stag, std::uint64_t, std::size_t, rdmap::remote_right) noexcept override {
    return {.error = rdmap::access_error::invalid_stag};
  }
  rdmap::access_result access_local(stag, void*, std::size_t, bool) noexcept override {
    return {.error = rdmap::access_error::invalid_stag};
  }
  void release(void*) noexcept override {}
  rdmap::access_error invalidate_remote(stag) noexcept override { return rdmap::access_error::invalid_stag; }
  rdmap::access_error invalidate_local(stag) noexcept override { return rdmap::access_error::invalid_stag; }
  rdmap::receive_slot* take_receive() noexcept override { return nullptr; }
  void send_completed(const rdmap::work_request&, rdmap::wr_status) noexcept override {}
  void receive_completed(rdmap::receive_slot&, const rdmap::receive_result&) noexcept override {}
};

void let_linger(rdmap::stream& s) {
  static no_consumer nobody;
  static rdmap::send_ring nothing(1, 1, 0);
  s.bind(nobody, nothing, {.max_receive_sge = 1});
}

}  // namespace

// Connecting ----------------------------------------------------------------------------------------------------------

std::shared_ptr<connection> queue_pair_state::current() const noexcept {
  const std::lock_guard lock(connection_mutex_);
  return connection_;
}

std::shared_ptr<queue_pair_state::connecting> queue_pair_state::attempt() const noexcept {
  const std::lock_guard lock(connection_mutex_);
  return connecting_;
}

void queue_pair_state::set_attempt(std::shared_ptr<connecting> attempt) noexcept {
  const std::lock_guard lock(connection_mutex_);
  connecting_.swap(attempt);  // the old one goes after the lock
}

result<> queue_pair_state::leave_connection() noexcept {
  const auto c = current();
  if (c == nullptr) return {};
  // What is posted meanwhile must find either this connection, which flushes it, or none.
  const std::lock_guard posting(post_mutex_);
  const domain::turn here(c->home());
  submitted_ = posted_.load();
  c->stream().submit(submitted_, domain::now());
  if (!c->closed() && c->stream().needs_consumer()) return fail(errc::wrong_state);
  let_linger(c->stream());
  set_current(nullptr);
  flushed_unserved_ = posted_private_;
  return {};
}

void queue_pair_state::set_current(std::shared_ptr<connection> c) noexcept {
  std::shared_ptr<connection> old;
  {
    const std::lock_guard lock(connection_mutex_);
    old = std::exchange(connection_, c);
  }
  domain* const before = home_.exchange(c != nullptr ? &c->home() : nullptr);
  if (before != nullptr) {
    send_cq_->detach(*before);
    receive_cq_->detach(*before);
  }
  if (c != nullptr) {
    send_cq_->attach(c->home());
    receive_cq_->attach(c->home());
  }
  if (old != nullptr) old->owner = nullptr;
}

result<> queue_pair_state::check(const connection_options& options) {
  if (options.ird > max_read_depth || options.ord > max_read_depth) return fail(errc::invalid_read_depth);
  if (options.max_ulpdu < mpa::min_mulpdu || options.max_ulpdu > mpa::max_mulpdu) return fail(errc::invalid_argument);
  if (options.close_timeout.count() < 0 || options.fpdu_timeout.count() < 0 || options.startup_timeout.count() < 0) {
    return fail(errc::invalid_argument);
  }
  return {};
}

rdmap::stream_options queue_pair_state::stream_options_for(const connection_options& options, std::uint8_t revision) {
  rdmap::stream_options made;
  made.startup.revision = revision;
  made.startup.crc = options.crc;
  made.startup.markers = options.markers;
  made.startup.ird = options.ird;
  made.startup.ord = options.ord;
  made.startup.max_ird = std::max<std::uint16_t>(options.ird, 128);
  made.shortage =
      options.shortage == no_receive::hold ? rdmap::receive_shortage::hold : rdmap::receive_shortage::terminate;
  made.max_ulpdu = options.max_ulpdu;
  made.reply_timeout = options.startup_timeout;
  made.request_timeout = options.startup_timeout;
  made.fpdu_timeout = options.fpdu_timeout;
  made.close_timeout = options.close_timeout;
  return made;
}

result<> queue_pair_state::connect(const endpoint& peer, const connect_options& options) {
  if (auto r = check(options); !r) return r;
  if (options.mpa_revision != 1 && options.mpa_revision != 2) return fail(errc::invalid_revision);
  if (options.peer_to_peer && options.mpa_revision == 1) return fail(errc::invalid_revision);
  if (options.rtr_delay.count() < 0) return fail(errc::invalid_argument);
  if (options.private_data.size() > (options.mpa_revision == 1 ? mpa::max_private_data : mpa::max_enhanced_ulp_data)) {
    return fail(errc::invalid_private_data);
  }
  const std::lock_guard lock(control_mutex_);
  qp_state expected = qp_state::idle;
  if (!phase_.compare_exchange_strong(expected, qp_state::connecting)) {
    return fail(expected == qp_state::error ? errc::wrong_state : errc::already_connected);
  }
  [[maybe_unused]] const auto left = leave_connection();
  assert(left);  // idle: it has ended
  auto attempt = std::make_shared<connecting>();
  attempt->owner = this;
  attempt->home = pd_->context->next_domain();
  attempt->peer = peer;
  attempt->options = options;
  attempt->private_data.assign(options.private_data.begin(), options.private_data.end());
  const domain::turn here(*attempt->home);
  set_attempt(attempt);
  open_tcp(attempt);
  return {};
}

void queue_pair_state::open_tcp(const std::shared_ptr<connecting>& attempt) {
  attempt->attempt = tcp_glue::async_connect(
      attempt->home->io().get_executor(),
      {.remote = attempt->peer, .local = attempt->options.local, .timeout = attempt->options.tcp_timeout},
      [attempt](std::error_code ec, std::unique_ptr<tcp_glue::transport> transport) {
        const domain::turn here(*attempt->home);
        if (attempt->owner != nullptr) attempt->owner->tcp_open(attempt, ec, std::move(transport));
      });
}

void queue_pair_state::tcp_open(const std::shared_ptr<connecting>& attempt, std::error_code ec,
                                std::unique_ptr<tcp_glue::transport> transport) {
  if (ec) {
    connection_event event{.kind = event_kind::unreachable, .reason = ec, .remote = attempt->peer};
    set_attempt(nullptr);
    phase_.store(qp_state::idle);
    tell(std::move(event));
    return;
  }
  rdmap::stream_options options = stream_options_for(attempt->options, attempt->options.mpa_revision);
  options.startup.peer_to_peer = attempt->options.peer_to_peer;
  options.rtr_delay = attempt->options.rtr_delay;
  const auto c =
      connection::make(attempt->home, pd_->context->recorded(std::move(transport), tcp_glue::opener::local), options);
  take_over(c);
  const timestamp now = domain::now();
  c->stream().initiate(attempt->private_data, now);
  attempt->home->add(c);
  c->service(now);
}

// Under the lock of the connection's domain.
void queue_pair_state::take_over(std::shared_ptr<connection> c) {
  c->stream().bind(
      *this, ring_,
      {.max_receive_sge = receives_->max_sge(), .first_request = posted_.load(), .remote_read = options_.remote_read});
  submitted_ = posted_.load();
  c->owner = this;
  set_current(std::move(c));
}

result<> queue_pair_state::check_answer(connection& c, const accept_options& options) {
  if (c.closed() || c.stream().state() != rdmap::stream_state::deciding) return fail(errc::no_such_request);
  const bool enhanced = c.stream().peer_frame().header.enhanced;
  if (options.private_data.size() > (enhanced ? mpa::max_enhanced_ulp_data : mpa::max_private_data)) {
    return fail(errc::invalid_private_data);
  }
  if (options.ird.value_or(0) > max_read_depth || options.ord.value_or(0) > max_read_depth) {
    return fail(errc::invalid_read_depth);
  }
  return {};
}

result<> queue_pair_state::accept(const context_state& where, const std::shared_ptr<connection>& c,
                                  const accept_options& options) {
  if (&where != pd_->context.get()) return fail(errc::wrong_context);
  const std::lock_guard lock(control_mutex_);
  {
    const domain::turn here(c->home());
    IWARP_CHECK(check_answer(*c, options));
  }
  qp_state expected = qp_state::idle;
  if (!phase_.compare_exchange_strong(expected, qp_state::connecting)) {
    return fail(expected == qp_state::error ? errc::wrong_state : errc::already_connected);
  }
  [[maybe_unused]] const auto left = leave_connection();
  assert(left);  // idle: it has ended
  const domain::turn here(c->home());
  if (auto still = check_answer(*c, options); !still) {  // the peer went away meanwhile
    phase_.store(qp_state::idle);
    return still;
  }
  if (c->listener != nullptr) c->listener->let_go(*c);
  take_over(c);
  rdmap::stream& stream = c->stream();
  const mpa::startup_options& own = stream.options().startup;
  const timestamp now = domain::now();
  stream.accept(options.private_data, options.ird.value_or(own.ird), options.ord.value_or(own.ord), now);
  c->service(now);
  return {};
}

// Under the lock of the attempt's domain. True when there was one.
bool queue_pair_state::give_up_connecting() noexcept {
  const auto under_way = attempt();
  if (under_way == nullptr) return false;
  under_way->owner = nullptr;
  under_way->attempt.cancel();
  set_attempt(nullptr);
  return true;
}

// What the peer did not like may be left out of another Request, once each: revision 2, when it closes or answers
// unenhanced (RFC 6581 s10); markers, which Linux siw refuses.
bool queue_pair_state::fall_back() noexcept {
  const auto under_way = attempt();
  if (under_way == nullptr) return false;
  connect_options& options = under_way->options;
  rdmap::stream& stream = connection_->stream();
  if (options.markers && options.fall_back_without_markers && stream.error() == mpa::errc::markers_refused) {
    options.markers = false;
  } else if (options.mpa_revision == 2 && options.fall_back_to_revision_1 && !options.peer_to_peer) {
    const bool unanswered = stream.error() == mpa::errc::tcp_lost && !stream.peer_frame_begun();
    if (!unanswered && stream.error() != mpa::errc::not_enhanced) return false;
    options.mpa_revision = 1;
  } else {
    return false;
  }
  let_linger(stream);
  set_current(nullptr);
  open_tcp(under_way);
  return true;
}

void queue_pair_state::stream_event(rdmap::stream_event event) noexcept {
  const rdmap::stream& stream = connection_->stream();
  switch (event) {
    case rdmap::stream_event::request:
      return;  // the listener's
    case rdmap::stream_event::established:
      phase_.store(qp_state::rts);
      set_attempt(nullptr);
      tell(make_event(event_kind::established));
      return;
    case rdmap::stream_event::failed: {
      if (fall_back()) return;
      const bool rejected = stream.error() == mpa::errc::rejected || stream.error() == mpa::errc::markers_refused;
      connection_event made = make_event(rejected ? event_kind::rejected : event_kind::connect_error);
      set_attempt(nullptr);
      if (phase_.load() == qp_state::connecting) phase_.store(qp_state::idle);
      tell(std::move(made));
      return;
    }
    case rdmap::stream_event::disconnected:
      flush_receives();
      if (unsignaled_run_ != 0) free_send_slots(std::exchange(unsignaled_run_, 0));
      if (phase_.load() != qp_state::error) {
        phase_.store(!stream.error()                                      ? qp_state::idle
                     : stream.state() == rdmap::stream_state::terminating ? qp_state::terminate
                                                                          : qp_state::error);
      }
      flush_receives();  // posted before the state was seen
      tell(make_event(event_kind::disconnected));
      return;
    case rdmap::stream_event::closed:
      if (phase_.load() == qp_state::terminate) phase_.store(qp_state::error);
      return;
  }
}

connection_event queue_pair_state::make_event(event_kind kind) noexcept {
  connection_event event{.kind = kind};
  rdmap::stream& stream = connection_->stream();
  event.reason = stream.error();
  if (event.reason == mpa::errc::tcp_lost) event.tcp_error = stream.tcp_error();
  event.sent_terminate = stream.sent_terminate();
  event.received_terminate = stream.received_terminate();
  if (kind == event_kind::established || kind == event_kind::rejected) {
    const mpa::startup_frame& frame = stream.peer_frame();
    const const_bytes data = frame.private_data();
    event.private_data.assign(data.begin(), data.end());
    event.mpa_revision = frame.header.revision;
    if (frame.enhanced) {
      event.peer_ird = frame.enhanced->ird;
      event.peer_ord = frame.enhanced->ord;
    }
    event.crc = kind == event_kind::established && stream.agreement().crc;
    event.markers = kind == event_kind::established && stream.agreement().rx_markers;
  }
  event.local = connection_->local();
  event.remote = connection_->remote();
  return event;
}

void queue_pair_state::tell(connection_event event) noexcept {
  if (destroying_.load(std::memory_order_relaxed)) return;
  event.user_data = options_.user_data;
  event.qp_number = number_;
  if (event.reason) {
    event.reason_text = event.reason.message();
    if (event.tcp_error) event.reason_text += ": " + event.tcp_error.message();
    const auto add = [&](const char* what, const std::optional<rdmap::terminate_message>& t) {
      if (!t) return;
      event.reason_text += std::string(" (Terminate ") + what + ": " + rdmap::describe(t->code);
      if (t->swapped_reading) event.reason_text += ", or as siw lays it out: " + rdmap::describe(*t->swapped_reading);
      event.reason_text += ")";
    };
    add("sent", event.sent_terminate);
    add("received", event.received_terminate);
  }
  channel_->push(std::move(event));
}

// Ending --------------------------------------------------------------------------------------------------------------

result<> queue_pair_state::disconnect() {
  const std::lock_guard lock(control_mutex_);
  const auto c = current();
  if (c == nullptr) return fail(errc::not_connected);
  const domain::turn here(c->home());
  switch (phase_.load()) {
    case qp_state::connecting:
      return fail(errc::not_connected);
    case qp_state::idle:
    case qp_state::closing:
    case qp_state::terminate:
    case qp_state::error:
      return {};  // closed already, or about to be
    case qp_state::rts:
      break;
  }
  phase_.store(qp_state::closing);
  const timestamp now = domain::now();
  submitted_ = posted_.load();
  c->stream().submit(submitted_, now);
  c->stream().close(now);
  c->service(now);
  return {};
}

void queue_pair_state::abort() noexcept {
  const std::lock_guard lock(control_mutex_);
  bool tcp_was_opening = false;
  endpoint peer;
  if (const auto under_way = attempt(); under_way != nullptr) {
    const domain::turn here(*under_way->home);
    peer = under_way->peer;
    tcp_was_opening = give_up_connecting() && current() == nullptr;
  }
  const auto c = current();
  if (c == nullptr) {
    {
      const std::lock_guard posting(post_mutex_);
      phase_.store(qp_state::error);
      flush_unserved();
    }
    // The one event that connect() promised. With a connection its stream tells.
    if (tcp_was_opening) {
      tell({.kind = event_kind::connect_error,
            .reason = std::make_error_code(std::errc::connection_aborted),
            .remote = peer});
    }
    return;
  }
  const domain::turn here(c->home());
  phase_.store(qp_state::error);
  const timestamp now = domain::now();
  submitted_ = posted_.load();
  c->stream().submit(submitted_, now);
  c->stream().abort(now);
  flush_receives();
  if (!c->closed()) c->service(now);
}

result<> queue_pair_state::reset() {
  const std::lock_guard lock(control_mutex_);
  const qp_state phase = phase_.load();
  if (phase != qp_state::error && phase != qp_state::idle) return fail(errc::wrong_state);
  IWARP_CHECK(leave_connection());
  const std::lock_guard posting(post_mutex_);
  if (phase == qp_state::error) flush_unserved();  // what was posted since in error
  phase_.store(qp_state::idle);
  return {};
}

void queue_pair_state::destroy() noexcept {
  const std::lock_guard lock(control_mutex_);
  destroying_.store(true);
  if (const auto under_way = attempt(); under_way != nullptr) {
    const domain::turn here(*under_way->home);
    give_up_connecting();
  }
  if (const auto c = current(); c != nullptr) {
    const domain::turn here(c->home());
    const timestamp now = domain::now();
    rdmap::stream& stream = c->stream();
    if (stream.needs_consumer()) {
      stream.submit(posted_.load(), now);
      stream.abort(now);
      if (!c->closed()) c->service(now);
    }
    let_linger(stream);
    set_current(nullptr);
  }
  receives_->forget(*this);  // nobody publishes it from here on
  // It may still stand in the list of a domain whose lock's holder has not come to it: each empties its list on
  // leaving.
  for (const auto& d : pd_->context->domains()) const domain::turn here(*d);
  send_cq_->purge(*this);
  receive_cq_->purge(*this);
}

}  // namespace iwarp::verbs::detail
