#include "rdmap/stream.hpp"

#include <algorithm>
#include <cassert>

namespace iwarp::rdmap {

namespace {
// Messages that may wait for an earlier tagged message to end. Peers that do not interleave messages never need one.
constexpr std::size_t max_undelivered = 16;
}  // namespace

std::string_view to_string(stream_state state) noexcept {
  switch (state) {
    case stream_state::idle:
      return "idle";
    case stream_state::starting:
      return "starting";
    case stream_state::deciding:
      return "deciding";
    case stream_state::wait_first_fpdu:
      return "wait_first_fpdu";
    case stream_state::open:
      return "open";
    case stream_state::closing:
      return "closing";
    case stream_state::terminating:
      return "terminating";
    case stream_state::closed:
      return "closed";
  }
  return "?";
}

stream::stream(const stream_options& options, mpa::rx_memory& rx, mpa::tx_batch_pool& tx, trace_sink* trace)
    : options_(options), rx_memory_(rx), batches_(tx), trace_(trace), fpdu_rx_(rx, *this), ddp_rx_(*this) {
  deadlines_.fill(never);
}

stream::stream(const stream_options& options, consumer& user, send_ring& ring, mpa::rx_memory& rx,
               mpa::tx_batch_pool& tx, trace_sink* trace)
    : stream(options, rx, tx, trace) {
  bind(user, ring, {.max_receive_sge = options.max_receive_sge});
}

void stream::bind(consumer& user, send_ring& ring, const binding& how) {
  user_ = &user;
  ring_ = &ring;
  receive_pieces_.resize(std::max<std::uint32_t>(how.max_receive_sge, 1));
  submitted_ = next_ = retired_ = how.first_request;
  remote_read_ = how.remote_read;
  gather_.reserve(std::max<std::uint32_t>(ring.max_sge(), 1));
  pins_.reserve(std::max<std::uint32_t>(ring.max_sge(), 1));
}

stream::~stream() {
  release_pins();
  if (batch_ != nullptr) batches_.give_back(std::move(batch_));
}

//   idle -> starting -> open (initiator) ------------------+-> closing -----+-> closed
//              |                                           |                |
//              +-> deciding -> wait_first_fpdu -> open ----+-> terminating -+
//   Every state may go to closed: the connection is lost, start-up failed, or the consumer aborts.
void stream::set_state(stream_state next) noexcept {
  assert(next > state_ || (state_ == stream_state::starting && next == stream_state::deciding));
  state_ = next;
  trace(trace_event::state, 0, 0, to_string(next));
}

void stream::set_timer(timer which, duration after, timestamp now) noexcept {
  deadlines_[static_cast<std::size_t>(which)] = after == duration::zero() ? never : now + after;
}

timestamp stream::next_deadline() const noexcept { return *std::min_element(deadlines_.begin(), deadlines_.end()); }

std::optional<stream_event> stream::poll_event() noexcept {
  for (unsigned bit = 0; bit <= static_cast<unsigned>(stream_event::closed); ++bit) {
    if ((events_ & (1u << bit)) != 0) {
      events_ = static_cast<std::uint8_t>(events_ & ~(1u << bit));
      return static_cast<stream_event>(bit);
    }
  }
  return std::nullopt;
}

bool stream::needs_consumer() const noexcept {
  if (ended()) return false;
  return state_ != stream_state::closing || wants_ == mpa::disposition::keep || current_receive_ != nullptr ||
         (!undelivered_.slots.empty() && !undelivered_.empty());
}

stream_counters stream::counters() const noexcept {
  return {.fpdus_in = fpdu_rx_.counters().fpdus,
          .fpdus_out = fpdus_out_,
          .octets_in = fpdu_rx_.counters().octets,
          .octets_out = accepted_,
          .receive_holds = receive_holds_};
}

// Start-up ------------------------------------------------------------------------------------------------------------

void stream::initiate(const_bytes private_data, timestamp now) noexcept {
  set_state(stream_state::starting);
  startup_.initiate(options_.startup, private_data);
  set_timer(timer::startup, options_.reply_timeout, now);
}

void stream::respond(timestamp now) noexcept {
  set_state(stream_state::starting);
  startup_.respond(options_.startup);
  set_timer(timer::startup, options_.request_timeout, now);
}

void stream::accept(const_bytes private_data, std::uint16_t ird, std::uint16_t ord, timestamp now) noexcept {
  if (state_ != stream_state::deciding) return;  // the peer went away meanwhile: stream_event::failed tells
  mpa::startup_options own = options_.startup;
  own.ird = ird;
  own.ord = ord;
  startup_.accept(own, private_data);
  enter_full_operation(now);
  set_state(stream_state::wait_first_fpdu);
  if (agreement().peer_to_peer) {
    set_timer(timer::first_fpdu, options_.first_fpdu_timeout, now);  // established comes with the RTR
  } else {
    raise(stream_event::established);
  }
}

void stream::reject(const_bytes private_data, timestamp now) noexcept {
  if (state_ != stream_state::deciding) return;
  startup_.reject(private_data);
  end_stream(make_error_code(mpa::errc::rejected));
  // RFC 5044 s7.1.2 rule 2 leaves TCP to the ULP; this ULP has no other use for it, and lets the initiator close first.
  // A FIN on the heels of the Reply would hide it from Linux siw, which reads only while its socket is in state
  // ESTABLISHED (siw_cm.c, siw_cm_llp_data_ready): the private data would be lost.
  set_state(stream_state::terminating);
  deadlines_.fill(never);
  set_timer(timer::close, options_.linger_timeout, now);
}

void stream::startup_commit(const_bytes octets, timestamp now) noexcept {
  const auto used = startup_.consume(octets);
  if (!used) {
    startup_failed(used.error(), now);
    return;
  }
  switch (startup_.current()) {
    case mpa::startup_exchange::state::wait_reply:
    case mpa::startup_exchange::state::wait_request:
    case mpa::startup_exchange::state::failed:
      return;
    case mpa::startup_exchange::state::deciding:
      if (state_ == stream_state::starting) {
        clear_timer(timer::startup);
        set_state(stream_state::deciding);
        raise(stream_event::request);
      }
      return;
    case mpa::startup_exchange::state::rejected:
      startup_failed(startup_.error(), now);
      return;
    case mpa::startup_exchange::state::agreed:
      break;
  }
  clear_timer(timer::startup);
  enter_full_operation(now);
  set_state(stream_state::open);
  rtr_pending_ = agreement().rtr;
  set_timer(timer::rtr, options_.rtr_delay, now);
  raise(stream_event::established);
  // FPDUs may follow directly behind the Reply: some responders do not wait for ours.
  const const_bytes rest = octets.subspan(*used);
  if (rest.empty()) return;
  const mutable_bytes window = fpdu_rx_.window();
  assert(rest.size() <= window.size());
  std::copy(rest.begin(), rest.end(), window.begin());
  rx_result(fpdu_rx_.commit(rest.size()), now);
}

void stream::startup_failed(std::error_code reason, timestamp now) noexcept {
  if (reason == mpa::errc::insufficient_ird || reason == mpa::errc::no_matching_rtr) {
    // The initiator has a valid Reply. RFC 6581 s9: full operation is entered just far enough to say why.
    enter_full_operation(now);
    fail_stream(reason, now);
    return;
  }
  end_stream(reason);
  finish(mpa::disposition::close);
}

void stream::enter_full_operation(timestamp) noexcept {
  const mpa::negotiated& agreed = agreement();
  fpdu_rx_.start(agreed.crc, agreed.rx_markers);
  fpdu_tx_.start(agreed.crc, agreed.tx_markers);
  reads_.reset(std::max<std::size_t>(agreed.ord, 1));
  inbound_.reset(agreed.ird);
  undelivered_.reset(max_undelivered);
}

// Life and end --------------------------------------------------------------------------------------------------------

void stream::handle_eof(timestamp now) noexcept {
  peer_fin_ = true;
  switch (state_) {
    case stream_state::idle:
    case stream_state::closed:
      return;
    case stream_state::starting:
    case stream_state::deciding:
      startup_failed(
          make_error_code(startup_.peer_frame_begun() && state_ == stream_state::starting ? mpa::errc::startup_cut_short
                                                                                          : mpa::errc::tcp_lost),
          now);
      return;
    case stream_state::terminating:
      finish_terminating();
      return;
    case stream_state::closing:
      if (discarding()) {  // the message that was held is lost to the consumer: "Bad Close" (VERBS s6.2)
        end_stream(make_error_code(errc::stream_catastrophic));
        finish(mpa::disposition::close);
        return;
      }
      break;
    case stream_state::wait_first_fpdu:
    case stream_state::open:
      break;
  }
  fin_waits_ = held_;  // what came before FIN is delivered before FIN (RFC 5044 s7.2)
  if (fin_waits_) return;
  if (fpdu_rx_.mid_fpdu()) {  // FIN inside an FPDU is a lost connection (RFC 5044 s7.2)
    handle_lost({}, now);
  } else if (work_outstanding() || ddp_rx_.in_message(send_queue) || tagged_open()) {
    fail_stream(make_error_code(errc::peer_closed_with_work), now);
  } else {
    end_stream({});
    finish(mpa::disposition::close);
  }
}

void stream::handle_lost(std::error_code reason, timestamp) noexcept {
  if (state_ == stream_state::closed || state_ == stream_state::idle) return;
  tcp_error_ = reason;
  // After a Terminate, or after both FINs, a reset changes nothing that has been reported.
  if (state_ != stream_state::terminating) end_stream(make_error_code(mpa::errc::tcp_lost));
  finish(mpa::disposition::abort);
}

void stream::handle_deadline(timestamp now) noexcept {
  const auto due = [&](timer which) {
    timestamp& at = deadlines_[static_cast<std::size_t>(which)];
    if (at > now) return false;
    at = never;
    return true;
  };
  if (due(timer::startup)) {
    startup_failed(make_error_code(mpa::errc::startup_timeout), now);
  }
  if (due(timer::rtr) && state_ == stream_state::open && !first_fpdu_seen_) rtr_pending_ = mpa::rtr_kind::write;
  if (due(timer::first_fpdu) && state_ == stream_state::wait_first_fpdu) {
    end_stream(make_error_code(mpa::errc::first_fpdu_timeout));
    finish(mpa::disposition::abort);
  }
  if (due(timer::fpdu) && !ended()) {
    if (held_ || !fpdu_rx_.mid_fpdu()) {
      // Waiting for us, not for the peer.
    } else if (fpdu_rx_.counters().fpdus != fpdu_timer_at_) {
      fpdu_timer_at_ = fpdu_rx_.counters().fpdus;
      set_timer(timer::fpdu, options_.fpdu_timeout, now);
    } else {
      end_stream(make_error_code(mpa::errc::fpdu_timeout));
      finish(mpa::disposition::abort);
    }
  }
  if (due(timer::close) && state_ != stream_state::closed) {
    // The peer never finished its half. What we had to say was sent or cannot be.
    if (state_ == stream_state::closing && !error_) error_ = make_error_code(mpa::errc::tcp_lost);
    // A Terminate that TCP has taken is not to be destroyed by a reset (RFC 5040 s6.2).
    const bool said = state_ == stream_state::terminating && terminate_sent();
    finish(said ? mpa::disposition::close : mpa::disposition::abort);
  }
}

void stream::submit(std::uint64_t end, timestamp now) noexcept {
  submitted_ = end;
  if (ended()) {
    flush_requests();
  } else if (state_ == stream_state::closing && wants_ != mpa::disposition::keep && retired_ < submitted_) {
    // A Send posted behind FIN: "Bad Close" (VERBS s6.2).
    end_stream(make_error_code(errc::stream_catastrophic));
    finish(mpa::disposition::abort);
  } else {
    check_closing(now);
  }
}

void stream::close(timestamp now) noexcept {
  switch (state_) {
    case stream_state::idle:
    case stream_state::starting:
    case stream_state::deciding:
      abort(now);
      return;
    case stream_state::closing:
    case stream_state::terminating:
    case stream_state::closed:
      return;
    case stream_state::wait_first_fpdu:
    case stream_state::open:
      break;
  }
  const bool may_send = state_ == stream_state::open;
  set_state(stream_state::closing);
  set_timer(timer::close, options_.close_timeout, now);
  clear_timer(timer::first_fpdu);
  if (!may_send) flush_requests();  // they were never going to leave before an FPDU came
  close_limit_ = submitted_;
  check_closing(now);
}

void stream::check_closing(timestamp) noexcept {
  if (state_ != stream_state::closing || wants_ != mpa::disposition::keep) return;
  if (work_outstanding()) return;
  flush_requests();  // those that came after close()
  want(mpa::disposition::shutdown_write);
}

void stream::terminate(std::error_code reason, timestamp now) noexcept {
  if (ended() || state_ == stream_state::idle) return;
  if (!reason) reason = make_error_code(errc::local_catastrophic);
  if (state_ == stream_state::starting || state_ == stream_state::deciding) {
    end_stream(reason);
    finish(mpa::disposition::abort);
    return;
  }
  offender_size_ = 0;
  fail_stream(reason, now);
}

void stream::abort(timestamp) noexcept {
  if (!ended() && state_ != stream_state::idle) end_stream(std::make_error_code(std::errc::connection_aborted));
  finish(mpa::disposition::abort);
}

void stream::detach(const_bytes region, timestamp now) noexcept {
  if (batch_ != nullptr) batch_->detach(region);
  if (current_receive_ == nullptr || ended()) return;
  for (const sge& element : current_receive_->elements) {
    if (element.length == 0) continue;
    const auto* begin = static_cast<const std::byte*>(element.address);
    if (begin < region.data() + region.size() && region.data() < begin + element.length) {
      offender_size_ = 0;
      complete_current_receive(wr_status::local_protection);
      fail_stream(make_error_code(errc::local_catastrophic), now);
      return;
    }
  }
}

// An error stops the stream: no more work is begun, what is outstanding completes, the Terminate follows what is
// already framed, at an FPDU boundary. The first error wins.
void stream::fail_stream(std::error_code reason, timestamp now) noexcept {
  if (ended()) return;
  const auto entry = terminate_for(reason);
  // Before the first FPDU a responder may send nothing, not even a Terminate (RFC 5044 s7.1.2 rule 4).
  const bool may_send = state_ != stream_state::wait_first_fpdu && wants_ == mpa::disposition::keep;
  end_stream(reason);
  if (!entry || !may_send) {
    finish(mpa::disposition::abort);
    return;
  }
  terminate_message message;
  message.code = entry->code;
  if (entry->headers != term_headers::none && offender_size_ != 0) {
    message.segment_length_valid = true;
    message.segment_length = static_cast<std::uint16_t>(offender_length_);
    message.ddp_header = offender_;
    message.ddp_header_size = offender_size_;
    if (entry->headers == term_headers::ddp_and_read_request) message.request = offender_request_;
  }
  terminate_out_ = message;
  terminate_pending_ = true;
  // The requests were flushed: their memory is the consumer's again, so what is framed from it must be ours.
  if (batch_ != nullptr) batch_->detach_all();
  set_state(stream_state::terminating);
  deadlines_.fill(never);
  set_timer(timer::close, options_.linger_timeout, now);
  want(mpa::disposition::shutdown_write);
}

// Everything outstanding completes and the ULP is told, once. The TCP connection is another matter: finish().
void stream::end_stream(std::error_code reason) noexcept {
  if (ended()) return;
  const bool was_up = was_established();
  if (!was_up && !reason) reason = make_error_code(mpa::errc::tcp_lost);  // nothing but success is without a reason
  if (!error_) error_ = reason;
  complete_current_receive(wr_status::flushed);
  flush_requests();
  raise(was_up ? stream_event::disconnected : stream_event::failed);
}

// The engine is through; `how` says how the TCP connection ends.
void stream::finish(mpa::disposition how) noexcept {
  want(how);
  deadlines_.fill(never);
  if (how == mpa::disposition::abort && batch_ != nullptr) {
    batch_->clear();
    batches_.give_back(std::move(batch_));
  }
  if (state_ == stream_state::closed) return;
  if (state_ == stream_state::closing) end_stream(error_);
  set_state(stream_state::closed);
  raise(stream_event::closed);
}

// After the Terminate and both FINs nothing is left to wait for.
void stream::finish_terminating() noexcept {
  if (peer_fin_ && terminate_sent()) finish(mpa::disposition::close);
}

// At most one request of a stream ends in another state than success or flushed (VERBS s6.2.4).
void stream::flush_requests() noexcept {
  if (user_ == nullptr) return;  // a responder that never accepted
  release_pins();
  source_ = message_source::none;
  while (retired_ < submitted_) {
    const std::uint64_t index = retired_++;
    user_->send_completed((*ring_)[index], guilty_ && guilty_->index == index ? guilty_->status : wr_status::flushed);
  }
  next_ = retired_;
  reads_.size = 0;
}

}  // namespace iwarp::rdmap
