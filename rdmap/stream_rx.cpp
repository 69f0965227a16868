// The receiving half of rdmap::stream: octets from the glue, verified ULPDUs from MPA, checked segments from DDP.
#include <algorithm>
#include <cassert>

#include "rdmap/stream.hpp"

namespace iwarp::rdmap {

namespace {

ddp::errc tagged_error(access_error e) noexcept {
  switch (e) {
    case access_error::none:
    case access_error::invalid_stag:
    case access_error::cannot_invalidate:
      return ddp::errc::tagged_invalid_stag;
    case access_error::out_of_bounds:
      return ddp::errc::tagged_base_or_bounds;
    case access_error::not_associated:
      return ddp::errc::tagged_not_associated;
    case access_error::no_right:
      return ddp::errc::tagged_no_access;
    case access_error::wraps:
      return ddp::errc::tagged_offset_wrap;
  }
  return ddp::errc::tagged_invalid_stag;
}

errc invalidate_error(access_error e) noexcept {
  switch (e) {
    case access_error::none:
    case access_error::invalid_stag:
      return errc::invalidate_invalid_stag;
    case access_error::no_right:
      return errc::invalidate_no_access;
    case access_error::not_associated:
      return errc::invalidate_not_associated;
    case access_error::out_of_bounds:
    case access_error::wraps:
    case access_error::cannot_invalidate:
      return errc::cannot_invalidate;
  }
  return errc::cannot_invalidate;
}

// Octets that the start-up may bring in one read: a whole frame and the first FPDUs of a responder that did not wait.
constexpr std::size_t startup_window = 1024;

}  // namespace

// Octets from the glue ------------------------------------------------------------------------------------------------

// The consumer closes while a message waits for a receive that will not come: it is dropped, and what follows it.
bool stream::discarding() const noexcept {
  return state_ == stream_state::closing && held_ && wants_ != mpa::disposition::keep;
}

bool stream::wants_read() const noexcept {
  switch (state_) {
    case stream_state::idle:
    case stream_state::closed:
      return false;
    case stream_state::starting:
    case stream_state::deciding:
    case stream_state::terminating:
      return !peer_fin_;
    case stream_state::wait_first_fpdu:
    case stream_state::open:
    case stream_state::closing:
      return !peer_fin_ && (!held_ || discarding());
  }
  return false;
}

mutable_bytes stream::rx_window() noexcept {
  if (!wants_read()) return {};
  if (discarding()) return rx_memory_.staging();
  switch (state_) {
    case stream_state::starting:
    case stream_state::deciding:
      return rx_memory_.staging().first(startup_window);
    case stream_state::terminating:
      return rx_memory_.staging();  // what comes is discarded
    case stream_state::wait_first_fpdu:
    case stream_state::open:
    case stream_state::closing:
      return fpdu_rx_.window();
    case stream_state::idle:
    case stream_state::closed:
      break;
  }
  return {};
}

void stream::rx_commit(std::size_t n, timestamp now) noexcept {
  if (discarding()) return;
  switch (state_) {
    case stream_state::starting:
    case stream_state::deciding: {
      // The staging buffer becomes the FPDU receiver's inside this call, so the frame moves out of it first.
      std::array<std::byte, startup_window> octets;
      std::copy_n(rx_memory_.staging().begin(), n, octets.begin());
      startup_commit({octets.data(), n}, now);
      return;
    }
    case stream_state::wait_first_fpdu:
    case stream_state::open:
    case stream_state::closing:
      rx_result(fpdu_rx_.commit(n), now);
      return;
    case stream_state::idle:
    case stream_state::terminating:
    case stream_state::closed:
      return;
  }
}

void stream::rx_result(const result<mpa::fpdu_rx::status>& r, timestamp now) noexcept {
  if (ended()) return;
  if (terminate_in_) {  // whatever came behind it, and however bad: no Terminate in answer to a Terminate
    terminate_arrived();
    return;
  }
  if (!r) {
    fail_stream(r.error(), now);
    return;
  }
  const bool held = *r == mpa::fpdu_rx::status::held;
  if (held != held_) {
    held_ = held;
    if (held) ++receive_holds_;
    trace(trace_event::held, held ? 1 : 0);
  }
  check_closing(now);
}

void stream::rx_park(timestamp now) noexcept {
  switch (state_) {
    case stream_state::wait_first_fpdu:
    case stream_state::open:
    case stream_state::closing:
      break;
    case stream_state::idle:
    case stream_state::starting:
    case stream_state::deciding:
    case stream_state::terminating:
    case stream_state::closed:
      return;
  }
  fpdu_rx_.park();
  if (fpdu_rx_.mid_fpdu() && !held_ && deadlines_[static_cast<std::size_t>(timer::fpdu)] == never) {
    fpdu_timer_at_ = fpdu_rx_.counters().fpdus;
    set_timer(timer::fpdu, options_.fpdu_timeout, now);
  }
}

void stream::receive_posted(timestamp now) noexcept {
  if (!held_ || ended()) return;
  if (discarding()) return;
  rx_result(fpdu_rx_.resume(), now);
  rx_park(now);
  if (fin_waits_ && !held_ && !ended()) handle_eof(now);
}

// Verified ULPDUs from MPA --------------------------------------------------------------------------------------------

result<mpa::ulpdu_answer> stream::on_ulpdu(const mpa::ulpdu& unit) noexcept {
  if (terminate_in_) return mpa::ulpdu_answer::taken;  // nothing may follow a Terminate
  const bool first = !first_fpdu_seen_;
  if (first) {
    // One validated FPDU opens the responder's transmit side (RFC 5044 s7.1.2 rule 4).
    first_fpdu_seen_ = true;
    if (state_ == stream_state::wait_first_fpdu) {
      clear_timer(timer::first_fpdu);
      set_state(stream_state::open);
      if (agreement().peer_to_peer) raise(stream_event::established);
      if (unit.size() == 0 && agreement().rtr_accepted.send)
        return mpa::ulpdu_answer::taken;  // RTR by RFC 6581's words
    }
  }
  trace(trace_event::fpdu_in, unit.size(), unit.stream_offset());
  // The peer may send nothing but a Terminate once it knows of our FIN: "Bad Close" (VERBS s6.2).
  const bool fin_sent = state_ == stream_state::closing && wants_ != mpa::disposition::keep;
  if (fin_sent && (unit.size() < 2 || opcode_of(std::to_integer<std::uint8_t>(unit.head()[1])) != opcode::terminate)) {
    return fail(errc::stream_catastrophic);
  }
  current_is_rtr_ = first && !startup_.initiator() && unit.size() == ddp::untagged_header_size;
  const auto answer = ddp_rx_.on_ulpdu(unit);
  if (!answer) {
    note_offender(unit.head(), unit.size());
    // The message that is too long may be on another queue than the receive that is being filled.
    if (answer.error() == ddp::errc::untagged_too_long &&
        ddp::untagged_header::parse(unit.head()).value_or(ddp::untagged_header{}).queue == send_queue) {
      complete_current_receive(wr_status::local_length);
    }
  }
  return answer;
}

// For the Terminate: the header of the first message in error as it came, and only if all of it came.
void stream::note_offender(const_bytes header, std::size_t segment_size) noexcept {
  if (offender_size_ != 0 || header.empty()) return;
  const std::size_t size = ddp::is_tagged(header[0]) ? ddp::tagged_header_size : ddp::untagged_header_size;
  if (header.size() < size) return;
  std::copy_n(header.begin(), size, offender_.begin());
  offender_size_ = size;
  offender_length_ = segment_size;
}

// Tagged segments -----------------------------------------------------------------------------------------------------

result<> stream::check_tagged(const ddp::tagged_header& header, std::size_t) noexcept {
  if ((header.ulp_control & version_mask) != version_bits) return fail(errc::bad_version);
  switch (opcode_of(header.ulp_control)) {
    case opcode::write:
      return {};
    case opcode::read_response:
      if (reads_.empty()) return fail(errc::unexpected_opcode);  // nobody asked
      return {};
    case opcode::read_request:
    case opcode::send:
    case opcode::send_invalidate:
    case opcode::send_solicited:
    case opcode::send_solicited_invalidate:
    case opcode::terminate:
    case opcode::immediate:
    case opcode::immediate_solicited:
    case opcode::atomic_request:
    case opcode::atomic_response:
      break;
  }
  return fail(errc::unexpected_opcode);
}

result<ddp::tagged_target> stream::resolve_tagged(const ddp::tagged_header& header, std::size_t size) noexcept {
  if (opcode_of(header.ulp_control) == opcode::write) {
    const access_result target = user_->access_remote(header.stag, header.offset, size, remote_right::write);
    if (!target) return fail(tagged_error(target.error));
    return ddp::tagged_target{target.bytes, target.pin};
  }
  // A Read Response goes nowhere but into the buffer its own request named, whatever rights that has (RFC 5040 s5.2).
  const outstanding_read& read = reads_.front();
  if (header.stag != read.sink) return bad_response(ddp::errc::tagged_invalid_stag);
  if (header.offset < read.sink_offset) return bad_response(ddp::errc::tagged_base_or_bounds);
  const std::uint64_t at = header.offset - read.sink_offset;
  if (at > read.size || size > read.size - at || size > read.size - read.received) {
    return bad_response(ddp::errc::tagged_base_or_bounds);
  }
  const access_result target = user_->access_local(read.sink, static_cast<std::byte*>(read.address) + at, size, true);
  if (!target) return bad_response(tagged_error(target.error));
  return ddp::tagged_target{target.bytes, target.pin};
}

tl::unexpected<std::error_code> stream::bad_response(ddp::errc e) noexcept {
  if (!reads_.front().rtr) guilty_ = {reads_.front().index, wr_status::bad_response};
  return fail(e);
}

void stream::release_tagged(const ddp::tagged_target& target) noexcept { user_->release(target.pin); }

result<> stream::tagged_placed(const ddp::tagged_header& header, std::size_t size) noexcept {
  if (opcode_of(header.ulp_control) == opcode::write) {
    write_open_ = !header.last;
    if (header.last) trace(trace_event::message_in, static_cast<std::uint8_t>(opcode::write), size);
  } else {
    outstanding_read& read = reads_.front();
    read.received += static_cast<std::uint32_t>(size);
    response_open_ = !header.last;
    if (header.last) {
      if (read.received != read.size) return bad_response(ddp::errc::tagged_base_or_bounds);  // too short
      trace(trace_event::message_in, static_cast<std::uint8_t>(opcode::read_response), read.size);
      if (!read.rtr) (*ring_)[read.index].read_done = true;
      reads_.pop();
      retire();
    }
  }
  if (!tagged_open() && (!undelivered_.empty() || undelivered_reads_ != 0)) return deliver_waiting();
  return {};
}

// Untagged messages ---------------------------------------------------------------------------------------------------

result<> stream::check_untagged(const ddp::untagged_header& header, std::size_t payload) noexcept {
  if ((header.ulp_control & version_mask) != version_bits) return fail(errc::bad_version);
  const opcode op = opcode_of(header.ulp_control);
  const opcode_info& about = info(op);
  if (!about.assigned || about.tagged) return fail(errc::unexpected_opcode);
  if (header.queue > terminate_queue) return fail(ddp::errc::untagged_invalid_queue);
  if (about.queue != header.queue) return fail(errc::unexpected_opcode);
  switch (op) {
    case opcode::send:
    case opcode::send_invalidate:
    case opcode::send_solicited:
    case opcode::send_solicited_invalidate:
      return {};
    case opcode::read_request:
      if (!remote_read_) return fail(ddp::errc::untagged_invalid_queue);
      if (payload < read_request_size) return fail(ddp::errc::segment_too_short);
      return {};
    case opcode::terminate:
      if (payload < term_control_size) return fail(ddp::errc::segment_too_short);
      return {};
    case opcode::write:
    case opcode::read_response:
    case opcode::immediate:
    case opcode::immediate_solicited:
    case opcode::atomic_request:
    case opcode::atomic_response:
      break;  // RFC 7306 is not offered by this stream
  }
  return fail(errc::unexpected_opcode);
}

result<ddp::buffer_answer> stream::untagged_buffer(const ddp::untagged_header& header,
                                                   ddp::untagged_target& out) noexcept {
  if (header.queue == read_request_queue) {
    // IRD: one buffer per request that may be outstanding (RFC 5040 s5.2.2). More than that is the peer's fault.
    if (inbound_.full()) return ddp::buffer_answer::none;
    if (!header.last) return fail(errc::unspecified);  // a Read Request is one segment (protocol.md E30)
    control_piece_ = mutable_bytes{control_buffer_}.first(read_request_size);
    out = {.pieces = {&control_piece_, 1}, .size = read_request_size};
    return ddp::buffer_answer::ready;
  }
  if (header.queue == terminate_queue) {
    // One Terminate can always be placed, whatever the ULP has posted (RFC 5040 s5.4).
    if (!header.last) return fail(errc::message_not_single);
    control_piece_ = control_buffer_;
    out = {.pieces = {&control_piece_, 1}, .size = control_buffer_.size()};
    return ddp::buffer_answer::ready;
  }
  if (current_is_rtr_ && agreement().rtr_accepted.send && opcode_of(header.ulp_control) == opcode::send &&
      header.last && header.offset == 0) {
    // The peer's RTR, a zero-length Send, is MPA's own and uses no receive (RFC 6581 s4.4.2).
    out = {};
    return ddp::buffer_answer::ready;
  }
  current_is_rtr_ = false;
  receive_slot* slot = user_->take_receive();
  if (slot == nullptr) {
    return options_.shortage == receive_shortage::hold ? ddp::buffer_answer::hold : ddp::buffer_answer::none;
  }
  current_receive_ = slot;
  if (auto r = resolve_receive(*slot, out); !r) {
    complete_current_receive(wr_status::local_protection);
    return fail(r.error());
  }
  return ddp::buffer_answer::ready;
}

result<> stream::resolve_receive(receive_slot& slot, ddp::untagged_target& out) noexcept {
  assert(slot.elements.size() <= receive_pieces_.size());
  std::size_t used = 0;
  for (const sge& element : slot.elements) {
    if (element.length == 0) continue;
    const access_result target = user_->access_receive(element.key, element.address, element.length);
    if (!target) return fail(errc::local_catastrophic);  // protocol.md E36
    // The pin need not last: whoever takes the memory away calls detach(), which ends the stream.
    user_->release(target.pin);
    receive_pieces_[used++] = target.bytes;
  }
  out = {.pieces = {receive_pieces_.data(), used}, .size = slot.size};
  return {};
}

result<> stream::untagged_placed(const ddp::untagged_header& header, std::uint32_t size) noexcept {
  const opcode op = opcode_of(header.ulp_control);
  if (header.queue == terminate_queue) {
    auto message = terminate_message::parse(const_bytes{control_buffer_}.first(size));
    if (!message) return fail(message.error());
    terminate_in_ = *message;
    trace(trace_event::terminate_in,
          (std::uint64_t{message->code.layer} << 16) | (std::uint64_t{message->code.type} << 8) | message->code.code);
    return {};  // acted on when the octets of this turn are through: rx_result()
  }
  trace(trace_event::message_in, static_cast<std::uint8_t>(op), size);
  if (header.queue == read_request_queue) {
    inbound_.push({.request = read_request::parse(const_bytes{control_buffer_}.first<read_request_size>()),
                   .sequence = header.sequence});
    // Not started before everything sent before it is delivered (RFC 5040 s5.5).
    if (tagged_open() || !undelivered_.empty()) ++undelivered_reads_;
    return {};
  }
  const undelivered message{.slot = current_receive_, .header = header, .size = size};
  current_receive_ = nullptr;
  if (tagged_open() || !undelivered_.empty()) {
    if (undelivered_.full()) {
      current_receive_ = message.slot;
      return fail(errc::message_not_single);  // the last segment of a tagged message is missing
    }
    undelivered_.push(message);
    return {};
  }
  return deliver_send(message);
}

result<> stream::deliver_send(const undelivered& message) noexcept {
  if (message.slot == nullptr) return {};  // the peer's RTR
  receive_result done{.op = opcode_of(message.header.ulp_control), .size = message.size};
  if (invalidates(done.op)) {
    done.invalidated = message.header.invalidate;
    // After the message is complete, before its consumer sees it (RFC 5040 s5.3).
    if (const access_error e = user_->invalidate_remote(message.header.invalidate); e != access_error::none) {
      done.status = wr_status::remote_invalid_request;
      user_->receive_completed(*message.slot, done);
      return fail(invalidate_error(e));
    }
  }
  user_->receive_completed(*message.slot, done);
  return {};
}

result<> stream::deliver_waiting() noexcept {
  while (!undelivered_.empty()) {
    const undelivered message = undelivered_.front();
    undelivered_.pop();
    if (auto r = deliver_send(message); !r) {  // it is in error, not the segment that let it be delivered
      std::array<std::byte, ddp::untagged_header_size> header;
      message.header.emit(header);
      note_offender(header, ddp::untagged_header_size + message.size - message.header.offset);
      return r;
    }
  }
  undelivered_reads_ = 0;
  return {};
}

void stream::complete_current_receive(wr_status status) noexcept {
  while (!undelivered_.slots.empty() && !undelivered_.empty()) {  // taken earlier, so completed earlier
    if (receive_slot* slot = undelivered_.front().slot; slot != nullptr) {
      user_->receive_completed(*slot, {.status = wr_status::flushed});
    }
    undelivered_.pop();
  }
  if (current_receive_ == nullptr) return;
  receive_slot& slot = *current_receive_;
  current_receive_ = nullptr;
  user_->receive_completed(slot, {.status = status});
}

// The Read that a Terminate names, by the sink of the request it shows, by its MSN, or else the oldest. The sink says
// more: siw fills the MSN with a length (siw_qp.c, siw_send_terminate). A request answered in part shows what was left
// of it (RFC 5040 s4.8), so its sink lies inside that of the Read.
std::uint64_t stream::guilty_read(msn sequence, const std::optional<read_request>& request) noexcept {
  std::uint64_t index = reads_.front().index;
  int best = 0;
  for (std::size_t i = 0; i < reads_.size; ++i) {
    const outstanding_read& read = reads_[i];
    if (read.rtr) continue;
    int likeness = read.sequence == sequence ? 1 : 0;
    if (request && request->sink == read.sink && request->sink_offset - read.sink_offset <= read.size) likeness += 2;
    if (likeness <= best) continue;
    best = likeness;
    index = read.index;
  }
  return index;
}

// The peer's Terminate: tell the ULP, send none back (VERBS s6.2), close. A request it names completes with its reason.
void stream::terminate_arrived() noexcept {
  const terminate_message& message = *terminate_in_;
  const term_code code = message.swapped_reading.value_or(message.code);
  wr_status status = wr_status::remote_operation;
  if ((code.layer == 0 || code.layer == 1) && code.type == 1) status = wr_status::remote_access;
  if (code.layer == 1 && code.type == 2) status = wr_status::remote_invalid_request;
  if (message.ddp_header_size == ddp::untagged_header_size) {
    if (const auto header = ddp::untagged_header::parse(message.ddp_header); header) {
      if (header->queue == read_request_queue && !reads_.empty() && !reads_.front().rtr) {
        guilty_ = guilty_request{guilty_read(header->sequence, message.request), status};
      } else if (header->queue == send_queue) {
        for (std::uint64_t i = retired_; i < next_; ++i) {
          if ((*ring_)[i].op <= operation::send_solicited_invalidate && (*ring_)[i].sequence == header->sequence) {
            guilty_ = {i, status};
          }
        }
      }
    }
  }
  end_stream(make_error_code(errc::terminated_by_peer));
  if (batch_ != nullptr) batch_->clear();
  finish(mpa::disposition::close);
}

}  // namespace iwarp::rdmap
