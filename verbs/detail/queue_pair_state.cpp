#include "verbs/detail/queue_pair_state.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "verbs/detail/listener_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

namespace {

rdmap::operation operation_for(const send_request& request) noexcept {
  switch (request.op) {
    case opcode::send:
      return request.solicited ? rdmap::operation::send_solicited : rdmap::operation::send;
    case opcode::send_with_invalidate:
      return request.solicited ? rdmap::operation::send_solicited_invalidate : rdmap::operation::send_invalidate;
    case opcode::rdma_write:
      return rdmap::operation::write;
    case opcode::rdma_read:
      return rdmap::operation::read;
    case opcode::local_invalidate:
      break;
  }
  return rdmap::operation::local_invalidate;
}

completion_kind kind_for(rdmap::operation op) noexcept {
  switch (op) {
    case rdmap::operation::send:
    case rdmap::operation::send_invalidate:
    case rdmap::operation::send_solicited:
    case rdmap::operation::send_solicited_invalidate:
      return completion_kind::send;
    case rdmap::operation::write:
      return completion_kind::rdma_write;
    case rdmap::operation::read:
      return completion_kind::rdma_read;
    case rdmap::operation::local_invalidate:
      break;
  }
  return completion_kind::local_invalidate;
}

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

queue_pair_state::queue_pair_state(std::shared_ptr<protection_domain_state> pd,
                                   std::shared_ptr<completion_queue_state> send_cq,
                                   std::shared_ptr<completion_queue_state> receive_cq,
                                   std::shared_ptr<event_channel_state> channel,
                                   std::shared_ptr<receive_queue> receives, bool shared,
                                   const queue_pair_options& options)
    : pd_(std::move(pd)),
      send_cq_(std::move(send_cq)),
      receive_cq_(std::move(receive_cq)),
      channel_(std::move(channel)),
      receives_(std::move(receives)),
      shared_receives_(shared),
      options_(options),
      number_(pd_->context->next_qp_number()),
      regions_(pd_->context->regions()),
      ring_(options.max_send_requests, options.max_send_sge, options.max_inline) {}

queue_pair_state::~queue_pair_state() = default;

// Posting -------------------------------------------------------------------------------------------------------------

result<> queue_pair_state::post_one(const send_request& request) noexcept {
  if (posted_private_ - send_freed_.load(std::memory_order_acquire) >= ring_.depth()) return fail(errc::queue_full);
  if (request.elements.size() > ring_.max_sge()) return fail(errc::invalid_sge_count);
  if (request.op > opcode::local_invalidate) return fail(errc::invalid_opcode);
  if (request.op == opcode::rdma_read && (request.elements.size() > 1 || request.inline_data)) {
    return fail(errc::invalid_sge_count);
  }
  std::uint64_t length = 0;
  for (const sge& element : request.elements) length += element.length;
  if (length > std::numeric_limits<std::uint32_t>::max()) return fail(errc::invalid_length);
  if (request.inline_data && length > ring_.max_inline()) return fail(errc::invalid_length);

  rdmap::work_request& slot = ring_[posted_private_];
  slot.id = request.id;
  slot.op = operation_for(request);
  slot.signaled = request.signaled || options_.signal_all;
  slot.fence = request.fence;
  slot.inline_data = request.inline_data;
  slot.remote = request.remote.key;
  slot.remote_offset = request.remote.offset;
  slot.invalidate = request.invalidate;
  slot.length = static_cast<std::uint32_t>(length);
  slot.sge_count = static_cast<std::uint16_t>(request.elements.size());
  if (request.inline_data) {
    std::byte* to = ring_.inline_data(posted_private_).data();
    for (const sge& element : request.elements) {
      if (element.length == 0) continue;
      std::memcpy(to, element.address, element.length);
      to += element.length;
    }
  } else {
    std::copy(request.elements.begin(), request.elements.end(), ring_.elements(posted_private_).begin());
  }
  ++posted_private_;
  return {};
}

result<> queue_pair_state::post_send(std::span<const send_request> requests, std::size_t& posted) {
  posted = 0;
  result<> outcome;
  domain* home = nullptr;
  {
    const std::lock_guard lock(post_mutex_);
    switch (phase_.load()) {
      case qp_state::idle:
      case qp_state::connecting:
        return fail(errc::not_connected);
      case qp_state::rts:
      case qp_state::closing:  // flushed, and a "Bad Close" (VERBS s6.2): service() sees to it
      case qp_state::terminate:
      case qp_state::error:
        break;
    }
    for (const send_request& request : requests) {
      outcome = post_one(request);
      if (!outcome) break;
      ++posted;
    }
    if (posted == 0) return outcome;
    posted_.store(posted_private_, std::memory_order_release);
    home = home_.load();
    if (home == nullptr) flush_unserved();
  }
  if (home != nullptr) {
    home->publish(*this);
    home->run_published();
  }
  return outcome;
}

result<> queue_pair_state::post_receive(std::span<const receive_request> requests, std::size_t& posted) {
  posted = 0;
  if (shared_receives_) return fail(errc::has_shared_receive_queue);
  const auto outcome = receives_->post(requests, posted);
  const qp_state now = phase_.load();
  if (posted != 0 && (now == qp_state::error || now == qp_state::terminate)) {
    if (domain* const home = home_.load(); home != nullptr) {
      home->publish(*this);
      home->run_published();
    } else {
      const std::lock_guard lock(post_mutex_);
      flush_unserved();
    }
  }
  return outcome;
}

domain* queue_pair_state::publish_receive() noexcept {
  domain* const home = home_.load();
  if (home != nullptr) home->publish(*this);
  return home;
}

// In error without a connection: nobody else completes what is posted. Under post_mutex_.
void queue_pair_state::flush_unserved() noexcept {
  while (flushed_unserved_ != posted_private_) send_completed(ring_[flushed_unserved_++], rdmap::wr_status::flushed);
  flush_receives();
}

void queue_pair_state::service(domain& here) noexcept {
  domain* const home = home_.load();
  if (home != &here) {  // it was connected anew, through another domain, since the work was published
    if (home != nullptr) {
      home->publish(*this);
      home->run_published_later();  // no two domains' locks are held together
    }
    return;
  }
  connection& c = *connection_;
  const timestamp now = domain::now();
  const std::uint64_t posted = posted_.load(std::memory_order_acquire);
  if (phase_.load(std::memory_order_relaxed) == qp_state::closing && posted != submitted_) {
    c.stream().abort(now);  // Bad Close
  }
  submitted_ = posted;
  c.stream().submit(posted, now);
  c.stream().receive_posted(now);
  const qp_state phase = phase_.load(std::memory_order_relaxed);
  if (phase == qp_state::error || phase == qp_state::terminate) flush_receives();
  if (!c.closed()) c.service(now);
}

// Consumer of the stream ----------------------------------------------------------------------------------------------

rdmap::access_result queue_pair_state::access_remote(stag key, std::uint64_t offset, std::size_t size,
                                                     rdmap::remote_right right) noexcept {
  region* const r = regions_.pin(key);
  if (r == nullptr) return {.error = rdmap::access_error::invalid_stag};
  const bool write = right == rdmap::remote_right::write;
  rdmap::access_result found =
      region_table::check_remote(*r, pd_.get(), write ? access::remote_write : access::remote_read, offset, size);
  if (found && !(write ? options_.remote_write : options_.remote_read)) {
    found = {.error = rdmap::access_error::no_right};
  }
  if (!found) regions_.unpin(*r);
  return found;
}

rdmap::access_result queue_pair_state::check_local(stag key, const protection_domain_state* pd, void* address,
                                                   std::size_t size, bool write) noexcept {
  region* const r = regions_.pin(key);
  if (r == nullptr) return {.error = rdmap::access_error::invalid_stag};
  rdmap::access_result found = region_table::check_local(*r, pd, address, size, write);
  if (!found) regions_.unpin(*r);
  return found;
}

rdmap::access_result queue_pair_state::access_local(stag key, void* address, std::size_t size, bool write) noexcept {
  return check_local(key, pd_.get(), address, size, write);
}

// Those of a shared queue are checked against that queue's protection domain (VERBS s6.3).
rdmap::access_result queue_pair_state::access_receive(stag key, void* address, std::size_t size) noexcept {
  return check_local(key, receives_->pd(), address, size, true);
}

// Under the domain's lock. Nobody may hear that it is invalid while another domain is in the middle of a copy, or while
// octets of it are queued to be sent (RFC 5042 s6.2.2).
void queue_pair_state::revoke(region& r) noexcept {
  region_table::drain(r);
  if (r.length != 0) pd_->context->revoke(*home_.load(), {r.address, r.length});
}

rdmap::access_error queue_pair_state::invalidate_remote(stag key) noexcept {
  if (key.value == 0) return rdmap::access_error::cannot_invalidate;
  region* const r = regions_.pin(key);
  if (r == nullptr) return rdmap::access_error::invalid_stag;
  rdmap::access_error e = rdmap::access_error::none;
  if (r->pd != pd_.get()) {
    e = rdmap::access_error::not_associated;
  } else if (!(options_.remote_read && has(r->rights, access::remote_read)) &&
             !(options_.remote_write && has(r->rights, access::remote_write))) {
    e = rdmap::access_error::no_right;
  } else {
    r->valid.store(false);
  }
  regions_.unpin(*r);
  if (e == rdmap::access_error::none) revoke(*r);
  return e;
}

rdmap::access_error queue_pair_state::invalidate_local(stag key) noexcept {
  if (key.value == 0) return rdmap::access_error::cannot_invalidate;
  region* const r = regions_.pin(key);
  if (r == nullptr) return rdmap::access_error::invalid_stag;
  const bool same = r->pd == pd_.get();
  if (same) r->valid.store(false);
  regions_.unpin(*r);
  if (!same) return rdmap::access_error::not_associated;
  revoke(*r);
  return rdmap::access_error::none;
}

void queue_pair_state::push(completion_queue_state& queue, const completion_entry& entry) noexcept {
  if (!queue.push(entry)) overflow_.store(true, std::memory_order_relaxed);
}

void queue_pair_state::send_completed(const rdmap::work_request& request, rdmap::wr_status status) noexcept {
  ++unsignaled_run_;
  if (!request.signaled && status == rdmap::wr_status::success) return;
  push(*send_cq_, {.what = {.id = request.id,
                            .status = status,
                            .kind = kind_for(request.op),
                            .length = request.op == rdmap::operation::read ? request.length : 0,
                            .qp_number = number_},
                   .owner = this,
                   .send_slots = std::exchange(unsignaled_run_, 0)});
}

void queue_pair_state::receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& outcome) noexcept {
  push(*receive_cq_, {.what = {.id = slot.id,
                               .status = outcome.status,
                               .kind = completion_kind::receive,
                               .solicited = rdmap::is_solicited(outcome.op),
                               .with_invalidate = rdmap::invalidates(outcome.op),
                               .length = outcome.size,
                               .qp_number = number_,
                               .invalidated = outcome.invalidated},
                      .owner = this,
                      .receive = &slot});
}

void queue_pair_state::flush_receives() noexcept {
  if (shared_receives_) return;  // they stay usable for others (VERBS s6.3)
  while (rdmap::receive_slot* slot = receives_->take(nullptr)) {
    receive_completed(*slot, {.status = rdmap::wr_status::flushed});
  }
}

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
