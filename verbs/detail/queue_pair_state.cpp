#include "verbs/detail/queue_pair_state.hpp"

#include <algorithm>
#include <cstring>

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
  return post_batch(requests, posted, false);
}

result<> queue_pair_state::post_send_all(std::span<const send_request> requests) {
  std::size_t posted = 0;
  return post_batch(requests, posted, true);
}

result<> queue_pair_state::post_batch(std::span<const send_request> requests, std::size_t& posted, bool all_or_none) {
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
    if (!outcome && all_or_none) {
      posted_private_ -= posted;  // not published yet: nobody has seen them
      posted = 0;
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

}  // namespace iwarp::verbs::detail
