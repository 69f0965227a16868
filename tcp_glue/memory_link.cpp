#include "tcp_glue/memory_link.hpp"

#include <algorithm>
#include <cassert>

namespace iwarp::tcp_glue {
namespace {

const auto connection_reset = std::make_error_code(std::errc::connection_reset);
const auto canceled = std::make_error_code(std::errc::operation_canceled);

transport::io_result failed(std::error_code why) noexcept {
  return {.size = 0, .state = transport::io_state::failed, .error = why};
}
// Octets until a scripted offset.
std::size_t left_to(std::optional<std::uint64_t> offset, std::uint64_t position, std::size_t most) noexcept {
  if (!offset) return most;
  return *offset > position ? static_cast<std::size_t>(std::min<std::uint64_t>(most, *offset - position)) : 0;
}

transport::io_result stopped(transport::io_state why) noexcept { return {.size = 0, .state = why, .error = {}}; }

}  // namespace

class memory_link::link_end final : public transport {
 public:
  link_end(memory_link& link, side s) noexcept : link_(link), side_(s) {}

  io_result read(mutable_bytes into) noexcept override { return link_.read(side_, into); }
  io_result write(std::span<const gather_piece> pieces) noexcept override { return link_.write(side_, pieces); }
  void shutdown_write() noexcept override {
    link_.half_of(side_).calls.write_shut = true;
    link_.send_fin(side_);
  }
  void close() noexcept override { link_.close(side_, false); }
  void abort() noexcept override { link_.close(side_, true); }
  void wait_readable(std::shared_ptr<readiness_handler> handler) override {
    auto& own = link_.half_of(side_);
    assert(!own.on_readable);
    (own.calls.closed ? own.readable_cancelled.emplace_back() : own.on_readable) = std::move(handler);
  }
  void wait_writable(std::shared_ptr<readiness_handler> handler) override {
    auto& own = link_.half_of(side_);
    assert(!own.on_writable);
    (own.calls.closed ? own.writable_cancelled.emplace_back() : own.on_writable) = std::move(handler);
  }
  void cancel() noexcept override { link_.cancel(side_); }
  std::uint32_t emss() const noexcept override { return link_.half_of(side_).plan.emss; }
  result<endpoint> local_endpoint() const noexcept override { return address(side_); }
  result<endpoint> remote_endpoint() const noexcept override { return address(other(side_)); }

 private:
  // Addresses of documentation (RFC 5737): nothing is sent to them.
  result<endpoint> address(side s) const noexcept {
    if (link_.half_of(side_).calls.closed) return fail(std::make_error_code(std::errc::bad_file_descriptor));
    const bool is_a = s == side::a;
    return endpoint(boost::asio::ip::address_v4(is_a ? 0xc0000201 : 0xc0000202), is_a ? 49152 : 7471);
  }

  memory_link& link_;
  side side_;
};

memory_link::memory_link() {
  for (const side s : {side::a, side::b}) half_of(s).transport = std::make_unique<link_end>(*this, s);
}
memory_link::~memory_link() = default;

transport& memory_link::end(side s) noexcept { return *half_of(s).transport; }

void memory_link::advance_to(timestamp now) noexcept {
  assert(now >= now_);
  now_ = now;
}

void memory_link::cut(std::error_code reason) noexcept {
  for (half& h : halves_) {
    if (!h.lost) h.lost = reason;
    h.chunks.clear();
    h.queued = 0;
    h.fin.reset();
  }
}

std::size_t memory_link::run_handlers() {
  std::size_t count = 0;
  for (const side s : {side::a, side::b}) {
    half& own = half_of(s);
    // Moved out first: a handler waits again.
    const auto reads = std::exchange(own.readable_cancelled, {});
    const auto writes = std::exchange(own.writable_cancelled, {});
    for (const auto& handler : reads) handler->on_readable(canceled);
    for (const auto& handler : writes) handler->on_writable(canceled);
    count += reads.size() + writes.size();
    if (own.on_readable && readable(s)) {
      std::exchange(own.on_readable, nullptr)->on_readable({});
      ++count;
    }
    if (own.on_writable && writable(s)) {
      std::exchange(own.on_writable, nullptr)->on_writable({});
      ++count;
    }
  }
  return count;
}

timestamp memory_link::next_arrival() const noexcept {
  timestamp next = never;
  for (const half& h : halves_) {
    for (const chunk& c : h.chunks)
      if (c.arrival > now_) {
        next = std::min(next, c.arrival);
        break;
      }
    if (h.fin && *h.fin > now_) next = std::min(next, *h.fin);
  }
  return next;
}

bool memory_link::readable(side s) const noexcept {
  const half& own = half_of(s);
  const half& sender = half_of(other(s));
  if (own.lost || own.calls.closed || cut_reached()) return true;
  if (!sender.chunks.empty() && sender.chunks.front().arrival <= now_) return true;
  return fin_arrived(sender);
}

bool memory_link::writable(side s) const noexcept {
  const half& own = half_of(s);
  return own.lost || own.calls.closed || own.queued < own.plan.capacity || cut_reached();
}

bool memory_link::cut_reached() const noexcept {
  return std::any_of(halves_.begin(), halves_.end(),
                     [](const half& h) { return h.plan.cut_at && h.delivered >= *h.plan.cut_at; });
}

bool memory_link::fin_arrived(const half& sender) const noexcept {
  if (sender.plan.eof_at && sender.delivered >= *sender.plan.eof_at) return true;
  return sender.fin && *sender.fin <= now_ && sender.chunks.empty();
}

transport::io_result memory_link::read(side s, mutable_bytes into) noexcept {
  assert(!into.empty());
  half& own = half_of(s);
  half& sender = half_of(other(s));
  ++own.calls.reads;
  if (own.calls.closed) return failed(std::make_error_code(std::errc::bad_file_descriptor));
  if (own.calls.reads == own.plan.fail_read) {
    cut();
    own.lost = own.plan.failure;
  }
  if (cut_reached()) cut();

  std::size_t limit = sender.plan.read_limit;
  if (sender.plan.read_limit_at) limit = sender.plan.read_limit_at(sender.delivered);
  limit = std::min(std::max<std::size_t>(limit, 1), into.size());
  limit = left_to(sender.plan.cut_at, sender.delivered, limit);
  limit = left_to(sender.plan.eof_at, sender.delivered, limit);
  std::size_t got = 0;
  while (got < limit && !sender.chunks.empty() && sender.chunks.front().arrival <= now_) {
    chunk& head = sender.chunks.front();
    const std::size_t n = std::min(limit - got, head.octets.size() - head.taken);
    std::copy_n(head.octets.data() + head.taken, n, into.data() + got);
    head.taken += n;
    got += n;
    if (head.taken == head.octets.size()) sender.chunks.pop_front();
  }
  sender.queued -= got;
  sender.delivered += got;
  if (got > 0) return {.size = got, .state = transport::io_state::ok, .error = {}};
  // As the kernel does: what had arrived before a reset can still be read.
  if (own.lost) return failed(own.lost);
  if (fin_arrived(sender)) return stopped(transport::io_state::end_of_stream);
  return stopped(transport::io_state::would_block);
}

transport::io_result memory_link::write(side s, std::span<const gather_piece> pieces) noexcept {
  half& own = half_of(s);
  ++own.calls.writes;
  if (own.calls.closed) return failed(std::make_error_code(std::errc::bad_file_descriptor));
  if (own.calls.writes == own.plan.fail_write) {
    cut();
    own.lost = own.plan.failure;
  }
  if (cut_reached()) cut();
  if (own.lost) return failed(own.lost);
  if (own.calls.write_shut) return failed(std::make_error_code(std::errc::broken_pipe));

  std::size_t room = own.plan.capacity - std::min(own.queued, own.plan.capacity);
  if (room == 0) return stopped(transport::io_state::would_block);
  chunk sent{.arrival = std::max(own.last_arrival, now_ + own.plan.latency)};
  for (const gather_piece& piece : pieces) {
    const std::size_t n = std::min(room, piece.size);
    const auto octets = as_const_bytes(piece.data, n);
    sent.octets.insert(sent.octets.end(), octets.begin(), octets.end());
    room -= n;
  }
  const std::size_t size = sent.octets.size();
  assert(size > 0);
  const auto first = own.written;
  own.written += size;
  // The first octets a closed socket gets are what makes it answer with a reset.
  if (half_of(other(s)).calls.closed) {
    reset(s);
    return {.size = size, .state = transport::io_state::ok, .error = {}};
  }
  for (const damage& d : own.plan.damages)
    if (d.offset >= first && d.offset - first < size) sent.octets[d.offset - first] ^= d.mask;
  // What will never be read takes no room.
  std::uint64_t end = std::min(own.plan.cut_at.value_or(own.written), own.plan.eof_at.value_or(own.written));
  end = std::clamp(end, first, own.written);
  sent.octets.resize(end - first);
  own.queued += sent.octets.size();
  own.last_arrival = sent.arrival;
  if (!sent.octets.empty()) own.chunks.push_back(std::move(sent));
  return {.size = size, .state = transport::io_state::ok, .error = {}};
}

void memory_link::send_fin(side s) noexcept {
  half& own = half_of(s);
  if (own.fin || own.lost) return;
  own.last_arrival = std::max(own.last_arrival, now_ + own.plan.latency);
  own.fin = own.last_arrival;
}

// The receiver learns at once; what is under way to it is lost, what has arrived stays.
void memory_link::reset(side receiver) noexcept {
  half& own = half_of(receiver);
  half& sender = half_of(other(receiver));
  if (!own.lost) own.lost = connection_reset;
  while (!sender.chunks.empty() && sender.chunks.back().arrival > now_) {
    sender.queued -= sender.chunks.back().octets.size() - sender.chunks.back().taken;
    sender.chunks.pop_back();
  }
  sender.fin.reset();
}

void memory_link::close(side s, bool abort) noexcept {
  half& own = half_of(s);
  half& peer = half_of(other(s));
  if (own.calls.closed) return;
  own.calls.closed = true;
  own.calls.aborted = abort;
  // A close with octets unread is a reset in every TCP (RFC 2525 s2.17).
  if (abort || peer.queued > 0)
    reset(other(s));
  else
    send_fin(s);
  peer.chunks.clear();
  peer.queued = 0;
  cancel(s);
}

void memory_link::cancel(side s) noexcept {
  half& own = half_of(s);
  if (own.on_readable) own.readable_cancelled.push_back(std::exchange(own.on_readable, nullptr));
  if (own.on_writable) own.writable_cancelled.push_back(std::exchange(own.on_writable, nullptr));
}

}  // namespace iwarp::tcp_glue
