// The sending half of rdmap::stream: chooses what is sent next, cuts it into segments, frames them into a batch, and
// completes requests as TCP takes their octets.
#include <algorithm>
#include <cassert>
#include <utility>

#include "rdmap/stream.hpp"

namespace iwarp::rdmap {

namespace {

// Octets framed at a time. Large enough that the system call is small beside the copy, small enough that a batch stays
// in the cache between the CRC over it and the kernel's copy of it.
constexpr std::size_t batch_octets = 512 * 1024;
// Read Responses answered in a row while the consumer's own requests wait, and the other way round one to that many:
// neither side of the connection starves the other. Messages are never interleaved, since peers (siw) refuse that.
constexpr std::uint32_t response_burst = 4;

errc source_error(access_error e) noexcept {
  switch (e) {
    case access_error::none:
    case access_error::invalid_stag:
    case access_error::cannot_invalidate:
      return errc::source_invalid_stag;
    case access_error::out_of_bounds:
      return errc::source_base_or_bounds;
    case access_error::not_associated:
      return errc::source_not_associated;
    case access_error::no_right:
      return errc::source_no_access;
    case access_error::wraps:
      return errc::source_offset_wrap;
  }
  return errc::source_invalid_stag;
}

opcode opcode_for(operation op) noexcept {
  switch (op) {
    case operation::send:
      return opcode::send;
    case operation::send_invalidate:
      return opcode::send_invalidate;
    case operation::send_solicited:
      return opcode::send_solicited;
    case operation::send_solicited_invalidate:
      return opcode::send_solicited_invalidate;
    case operation::write:
      return opcode::write;
    case operation::read:
      return opcode::read_request;
    case operation::local_invalidate:
      break;  // never on the wire
  }
  return opcode::write;
}

}  // namespace

std::uint32_t stream::mulpdu() const noexcept {
  return std::max(mpa::min_mulpdu, std::min(options_.max_ulpdu, mpa::mulpdu(emss_, fpdu_tx_.markers())));
}

// Octets to the glue --------------------------------------------------------------------------------------------------

std::span<const gather_piece> stream::tx_window(timestamp now) noexcept {
  if (wants_ == mpa::disposition::abort || state_ == stream_state::idle) return {};
  if (const const_bytes frame = startup_.tx(); !frame.empty()) {
    if (ended() && startup_.initiator()) return {};  // a Request that TCP did not take in time
    startup_piece_ = {frame.data(), frame.size()};
    return {&startup_piece_, 1};
  }
  if (batch_ == nullptr || batch_->empty()) {
    frame_more(now);
    if (batch_ == nullptr) return {};
    if (batch_->empty()) {  // an idle connection holds no batch
      batches_.give_back(std::move(batch_));
      return {};
    }
  }
  return batch_->pieces();
}

void stream::tx_advance(std::size_t n, timestamp now) noexcept {
  if (!startup_.tx().empty()) {
    startup_.tx_advance(n);
    return;
  }
  assert(batch_ != nullptr);
  batch_->advance(n);
  accepted_ += n;
  while (responses_framed_ != 0 && inbound_.front().end_position <= accepted_) {
    inbound_.pop();  // its slot may be used by the next Read Request
    --responses_framed_;
  }
  retire();
  if (state_ == stream_state::terminating) finish_terminating();
  check_closing(now);
}

// Requests complete in order: Sends and Writes when TCP has taken their last octet, Reads when answered.
void stream::retire() noexcept {
  while (retired_ < next_) {
    work_request& request = (*ring_)[retired_];
    if (request.op == operation::read ? !request.read_done : request.end_position > accepted_) return;
    if (source_ == message_source::request && retired_ + 1 == next_) return;  // its last segment is not framed yet
    ++retired_;
    user_->send_completed(request, wr_status::success);
  }
}

bool stream::work_outstanding() const noexcept {
  return retired_ < work_end() || reads_.size != 0 || inbound_.size != 0;
}

// Framing -------------------------------------------------------------------------------------------------------------

void stream::frame_more(timestamp now) noexcept {
  if (state_ != stream_state::open && state_ != stream_state::closing && state_ != stream_state::terminating) return;
  const bool wanted = terminate_pending_ || rtr_pending_ != mpa::rtr_kind::none || source_ != message_source::none ||
                      next_ < work_end() || responses_framed_ < inbound_.size;
  if (!wanted) return;
  if (batch_ == nullptr) batch_ = batches_.take();
  const std::uint32_t most = mulpdu();
  const std::size_t pieces = std::max<std::size_t>(ring_->max_sge(), 1);
  while (batch_->size() < batch_octets) {
    if (terminate_pending_) {
      frame_terminate();
      return;
    }
    if (state_ == stream_state::terminating || wants_ == mpa::disposition::abort) return;
    if (source_ == message_source::none) {
      if (rtr_pending_ != mpa::rtr_kind::none) {
        frame_rtr();
        continue;
      }
      if (!next_message(now) && !terminate_pending_) return;
      if (batch_ == nullptr) return;  // an error ended the stream
      continue;
    }
    const std::uint32_t size = ddp_tx_.next_size(most);
    if (!batch_->has_room(ddp_tx_.header_size() + size, pieces)) {
      assert(!batch_->empty());
      return;
    }
    frame_segment(size, most, now);
    if (batch_ == nullptr) return;  // an error ended the stream
  }
}

bool stream::next_message(timestamp now) noexcept {
  const bool response_waits = responses_framed_ + undelivered_reads_ < inbound_.size;
  const bool request_waits = next_ < work_end();
  if (response_waits && (!request_waits || burst_ < response_burst)) {
    ++burst_;
    return next_response(now);
  }
  burst_ = 0;
  if (request_waits && next_request(now)) return true;
  return response_waits && !ended() && next_response(now);
}

// Takes the next posted request. False when there is none or it has to wait (fence, ORD).
bool stream::next_request(timestamp now) noexcept {
  work_request& request = (*ring_)[next_];
  request.read_done = false;
  request.end_position = 0;
  if (request.fence && !reads_.empty()) return false;
  const std::uint8_t control = control_octet(opcode_for(request.op));
  switch (request.op) {
    case operation::local_invalidate:
      if (user_->invalidate_local(request.invalidate) != access_error::none) {
        guilty_ = {next_++, wr_status::local_qp_operation};
        offender_size_ = 0;
        fail_stream(make_error_code(errc::local_catastrophic), now);
        return false;
      }
      ++next_;
      retire();
      return true;
    case operation::write:
      ddp_tx_.begin(ddp::tagged_header{.ulp_control = control, .stag = request.remote, .offset = request.remote_offset},
                    request.length);
      break;
    case operation::read:
      if (agreement().ord == 0) {
        guilty_ = {next_++, wr_status::local_qp_operation};
        offender_size_ = 0;
        fail_stream(make_error_code(errc::local_catastrophic), now);
        return false;
      }
      if (reads_.size >= agreement().ord) return false;  // the peer's IRD is full: later requests wait too
      {
        const sge sink = request.sge_count == 0 ? sge{} : ring_->elements(next_)[0];
        const auto sink_offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(sink.address));
        if (request.length != 0) {  // better to find out now than when the response is here
          const access_result target = user_->access_local(sink.key, sink.address, request.length, true);
          if (!target) {
            guilty_ = {next_++, wr_status::local_protection};
            offender_size_ = 0;
            fail_stream(make_error_code(errc::local_catastrophic), now);
            return false;
          }
          user_->release(target.pin);
        }
        reads_.push({.index = next_,
                     .rtr = false,
                     .sequence = ddp_tx_.next_sequence(read_request_queue),
                     .sink = sink.key,
                     .sink_offset = sink_offset,
                     .address = sink.address,
                     .size = request.length,
                     .received = 0});
        read_request{.sink = sink.key,
                     .sink_offset = sink_offset,
                     .size = request.length,
                     .source = request.remote,
                     .source_offset = request.remote_offset}
            .emit(request_header_);
      }
      ddp_tx_.begin(ddp::untagged_header{.ulp_control = control, .invalidate = {}, .queue = read_request_queue},
                    read_request_size);
      break;
    case operation::send:
    case operation::send_invalidate:
    case operation::send_solicited:
    case operation::send_solicited_invalidate:
      request.sequence = ddp_tx_.next_sequence(send_queue);
      ddp_tx_.begin(
          ddp::untagged_header{.ulp_control = control,
                               .invalidate = invalidates(opcode_for(request.op)) ? request.invalidate : stag{},
                               .queue = send_queue},
          request.length);
      break;
  }
  ++next_;
  sge_index_ = 0;
  sge_offset_ = 0;
  source_ = message_source::request;
  return true;
}

// Begins the answer to the oldest Read Request not answered yet. The source is checked whole before any octet of it is
// sent; a request for nothing is answered without looking at its STag (RFC 5040 s5.2.1).
bool stream::next_response(timestamp now) noexcept {
  const inbound_read& inbound = inbound_[responses_framed_];
  const read_request& request = inbound.request;
  response_sent_ = 0;
  if (request.size != 0) {
    const access_result source =
        user_->access_remote(request.source, request.source_offset, request.size, remote_right::read);
    if (!source) {
      source_failed(source.error, now);
      return false;
    }
    user_->release(source.pin);
  }
  ddp_tx_.begin(
      ddp::tagged_header{
          .ulp_control = control_octet(opcode::read_response), .stag = request.sink, .offset = request.sink_offset},
      request.size);
  source_ = message_source::response;
  return true;
}

// The Terminate carries the Read Request, advanced by what was already sent (RFC 5040 s4.8).
void stream::source_failed(access_error why, timestamp now) noexcept {
  const inbound_read& inbound = inbound_[responses_framed_];
  ddp::untagged_header{.ulp_control = control_octet(opcode::read_request),
                       .invalidate = {},
                       .queue = read_request_queue,
                       .sequence = inbound.sequence}
      .emit(offender_);
  offender_size_ = ddp::untagged_header_size;
  offender_length_ = ddp::untagged_header_size + read_request_size;
  offender_request_ = inbound.request;
  offender_request_->sink_offset += response_sent_;
  offender_request_->source_offset += response_sent_;
  offender_request_->size -= response_sent_;
  fail_stream(make_error_code(source_error(why)), now);
}

void stream::frame_segment(std::uint32_t size, std::uint32_t most, timestamp now) noexcept {
  gather_.clear();
  if (source_ == message_source::request) {
    if (!gather_request(size)) {
      // Local error while creating an outbound message: Terminate without headers (RFC 5040 s7.1 rule 1).
      guilty_ = {next_ - 1, wr_status::local_protection};
      offender_size_ = 0;
      fail_stream(make_error_code(errc::local_catastrophic), now);
      return;
    }
  } else if (size != 0) {
    const read_request& request = inbound_[responses_framed_].request;
    const access_result source =
        user_->access_remote(request.source, request.source_offset + response_sent_, size, remote_right::read);
    if (!source) {
      source_failed(source.error, now);
      return;
    }
    pins_.push_back(source.pin);
    gather_.push_back(source.bytes);
  }
  const ddp::segment segment = ddp_tx_.next(most);
  fpdu_tx_.frame(*batch_, const_bytes{segment.header}.first(segment.header_size), gather_);
  release_pins();
  ++fpdus_out_;
  trace(trace_event::fpdu_out, segment.header_size + segment.payload_size, fpdu_tx_.position());
  if (source_ == message_source::response) response_sent_ += segment.payload_size;
  if (!segment.last) return;
  if (source_ == message_source::request) {
    work_request& request = (*ring_)[next_ - 1];
    request.end_position = fpdu_tx_.position();
    trace(trace_event::message_out, static_cast<std::uint8_t>(opcode_for(request.op)), request.length);
  } else {
    inbound_[responses_framed_].end_position = fpdu_tx_.position();
    ++responses_framed_;
    trace(trace_event::message_out, static_cast<std::uint8_t>(opcode::read_response), response_sent_);
  }
  source_ = message_source::none;
}

bool stream::gather_request(std::uint32_t size) noexcept {
  const std::uint64_t index = next_ - 1;
  const work_request& request = (*ring_)[index];
  if (request.op == operation::read) {
    gather_.push_back(request_header_);
    return true;
  }
  if (request.inline_data) {
    gather_.push_back(ring_->inline_data(index).subspan(sge_offset_, size));
    sge_offset_ += size;
    return true;
  }
  const std::span<const sge> elements = ring_->elements(index).first(request.sge_count);
  while (size != 0) {
    const sge& element = elements[sge_index_];
    const std::uint32_t part = std::min(size, element.length - sge_offset_);
    if (part != 0) {
      const access_result source =
          user_->access_local(element.key, static_cast<std::byte*>(element.address) + sge_offset_, part, false);
      if (!source) {
        release_pins();
        return false;
      }
      pins_.push_back(source.pin);
      gather_.push_back(source.bytes);
    }
    size -= part;
    sge_offset_ += part;
    if (sge_offset_ == element.length) {
      ++sge_index_;
      sge_offset_ = 0;
    }
  }
  return true;
}

void stream::release_pins() noexcept {
  for (void* pin : pins_) user_->release(pin);
  pins_.clear();
}

// The initiator's ready-to-receive message: zero length, of the agreed kind, before anything else (RFC 6581 s9.2). It
// uses up the sequence number of its queue and completes nothing. The STag is 1: hardware refuses 0 (field fault B110).
void stream::frame_rtr() noexcept {
  constexpr stag rtr_stag{1};
  gather_.clear();
  switch (std::exchange(rtr_pending_, mpa::rtr_kind::none)) {
    case mpa::rtr_kind::none:
      return;
    case mpa::rtr_kind::write:
      ddp_tx_.begin(ddp::tagged_header{.ulp_control = control_octet(opcode::write), .stag = rtr_stag}, 0);
      break;
    case mpa::rtr_kind::read:
      reads_.push({.index = 0, .rtr = true, .sequence = ddp_tx_.next_sequence(read_request_queue), .sink = rtr_stag});
      read_request{.sink = rtr_stag, .sink_offset = 0, .size = 0, .source = rtr_stag, .source_offset = 0}.emit(
          request_header_);
      gather_.push_back(request_header_);
      ddp_tx_.begin(
          ddp::untagged_header{
              .ulp_control = control_octet(opcode::read_request), .invalidate = {}, .queue = read_request_queue},
          read_request_size);
      break;
    case mpa::rtr_kind::send:
      ddp_tx_.begin(
          ddp::untagged_header{.ulp_control = control_octet(opcode::send), .invalidate = {}, .queue = send_queue}, 0);
      break;
  }
  const ddp::segment segment = ddp_tx_.next(mulpdu());
  fpdu_tx_.frame(*batch_, const_bytes{segment.header}.first(segment.header_size), gather_);
  ++fpdus_out_;
}

void stream::frame_terminate() noexcept {
  std::array<std::byte, max_terminate_size> octets;
  const std::size_t size = terminate_out_->emit(octets);
  // A segmenter of its own: a message that the error cut short may be in progress in the other one.
  ddp::segmenter cutter;
  cutter.begin(
      ddp::untagged_header{.ulp_control = control_octet(opcode::terminate), .invalidate = {}, .queue = terminate_queue},
      static_cast<std::uint32_t>(size));
  const ddp::segment segment = cutter.next(mulpdu());
  const const_bytes payload{octets.data(), size};
  if (!batch_->has_room(segment.header_size + size, 1)) return;  // after what is queued: tx_window() asks again
  fpdu_tx_.frame(*batch_, const_bytes{segment.header}.first(segment.header_size), {&payload, 1});
  terminate_pending_ = false;
  ++fpdus_out_;
  const term_code code = terminate_out_->code;
  trace(trace_event::terminate_out, (std::uint64_t{code.layer} << 16) | (std::uint64_t{code.type} << 8) | code.code);
}

}  // namespace iwarp::rdmap
