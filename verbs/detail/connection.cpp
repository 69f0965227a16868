#include "verbs/detail/connection.hpp"

#include "verbs/detail/listener_state.hpp"
#include "verbs/detail/queue_pair_state.hpp"

namespace iwarp::verbs::detail {

namespace {
// Octets taken or given in one turn, so that one fast peer does not keep the domain from the others.
constexpr std::size_t turn_octets = 1024 * 1024;
}  // namespace

connection::connection(std::shared_ptr<domain> where, std::unique_ptr<tcp_glue::transport> transport,
                       const rdmap::stream_options& options)
    : domain_(std::move(where)),
      transport_(std::move(transport)),
      local_(transport_->local_endpoint().value_or(tcp_glue::endpoint{})),
      remote_(transport_->remote_endpoint().value_or(tcp_glue::endpoint{})),
      stream_(options, domain_->rx_memory(), domain_->batches()),
      driver_(*transport_, stream_),
      timer_(domain_->io()),
      peer_watch_(domain_->io()) {
  if (domain_->peer_timeout().count() != 0) transport_->keep_alive(domain_->peer_timeout());
}

connection::~connection() = default;

std::shared_ptr<connection> connection::make(std::shared_ptr<domain> where,
                                             std::unique_ptr<tcp_glue::transport> transport,
                                             const rdmap::stream_options& options) {
  std::shared_ptr<connection> fresh(new connection(std::move(where), std::move(transport), options), [](connection* c) {
    const std::shared_ptr<domain> home = c->domain_;  // stays while it buries
    home->bury(c);
  });
  if (fresh->domain_->peer_timeout().count() != 0) fresh->watch_peer();
  return fresh;
}

void connection::service(timestamp now) noexcept {
  if (dropped_) return;
  const auto self = shared_from_this();  // the last reference may go when it is removed
  more_to_write_ = driver_.pump_tx(now, turn_octets) == tcp_glue::driver::tx_result::budget;
  tell_events();
  if (owner != nullptr && owner->take_overflow() && !stream_.ended()) {
    stream_.terminate(make_error_code(rdmap::errc::cq_overflow), now);
    driver_.pump_tx(now, turn_octets);
    tell_events();
  }
  if (driver_.closed()) {
    timer_.cancel();
    peer_watch_.cancel();
    timer_at_ = never;
    domain_->remove(*this);
    return;
  }
  arm();
}

void connection::read(timestamp now) noexcept { driver_.pump_rx(now, turn_octets); }

void connection::poll(timestamp now) noexcept {
  if (dropped_) return;
  const auto before = driver_.octets_received();
  if (driver_.rx_wanted()) read(now);
  if (driver_.octets_received() != before || driver_.tx_blocked() || more_to_write_ || driver_.read_ended() ||
      stream_.wants() != mpa::disposition::keep || driver_.closed()) {
    service(now);
  }
}

void connection::tell_events() noexcept {
  while (const auto event = stream_.poll_event()) {
    if (owner != nullptr) {
      owner->stream_event(*event);
    } else if (listener != nullptr) {
      listener->stream_event(*this, *event);
    }
  }
}

void connection::arm() noexcept {
  if (dropped_ || driver_.closed()) return;
  arm_timer();
  // While the peer is held for want of a receive, nobody reads, so no read tells that it has gone.
  if (!lost_armed_ && !driver_.rx_wanted() && !driver_.read_ended()) {
    lost_armed_ = true;
    transport_->wait_lost(shared_from_this());
  }
  if (domain_->served_by_pollers()) return;
  if (!read_armed_ && driver_.rx_wanted()) {
    read_armed_ = true;
    transport_->wait_readable(shared_from_this());
  }
  if (!write_armed_ && (driver_.tx_blocked() || more_to_write_)) {
    write_armed_ = true;
    transport_->wait_writable(shared_from_this());
  }
}

// A timer that fires too early is set again; one that would fire too late is replaced.
void connection::arm_timer() noexcept {
  const timestamp deadline = stream_.next_deadline();
  if (deadline >= timer_at_) return;
  timer_at_ = deadline;
  timer_.expires_at(boost::asio::steady_timer::time_point{deadline});
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
    if (ec) return;
    const domain::turn here(*self->domain_);
    if (self->dropped_ || self->driver_.closed()) return;
    const timestamp now = domain::now();
    self->timer_at_ = never;
    if (self->stream_.next_deadline() <= now) self->stream_.handle_deadline(now);
    self->service(now);
  });
}

// Keep-alive finds a dead peer while nothing waits for it; TCP alone would repeat what does wait for a quarter of an
// hour.
void connection::watch_peer() noexcept {
  peer_watch_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(domain_->peer_timeout()) / 4);
  peer_watch_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const auto self = weak.lock();
    if (ec || self == nullptr) return;
    const domain::turn here(*self->domain_);
    if (self->closed()) return;
    const timestamp now = domain::now();
    const auto silence = self->transport_->unanswered();
    if (!silence) {
      self->unanswered_since_ = never;
    } else if (self->unanswered_since_ == never || *silence < now - self->unanswered_since_) {
      self->unanswered_since_ = now;  // it waits from now on, or was answered meanwhile
    } else if (now - self->unanswered_since_ >= self->domain_->peer_timeout()) {
      self->driver_.handle_lost(std::make_error_code(std::errc::timed_out), now);
      self->service(now);
      return;
    }
    self->watch_peer();
  });
}

void connection::on_readable(std::error_code ec) noexcept {
  const domain::turn here(*domain_);
  read_armed_ = false;
  if (ec || dropped_ || driver_.closed()) return;
  if (domain_->served_by_pollers()) return;
  const timestamp now = domain::now();
  read(now);
  service(now);
}

void connection::on_writable(std::error_code ec) noexcept {
  const domain::turn here(*domain_);
  write_armed_ = false;
  if (ec || dropped_ || driver_.closed()) return;
  service(domain::now());
}

void connection::on_lost(std::error_code reason) noexcept {
  const domain::turn here(*domain_);
  lost_armed_ = false;
  if (reason == std::errc::operation_canceled || dropped_ || driver_.closed()) return;
  const timestamp now = domain::now();
  if (driver_.rx_wanted()) {  // it reads again: what came before the end comes first
    read(now);
  } else {
    driver_.handle_lost(reason, now);
  }
  service(now);
}

void connection::drop() noexcept {
  if (dropped_) return;
  dropped_ = true;
  owner = nullptr;
  listener = nullptr;
  timer_.cancel();
  peer_watch_.cancel();
  if (!driver_.closed()) {
    if (stream_.needs_consumer()) {
      transport_->abort();
    } else {
      transport_->close();
    }
  }
}

}  // namespace iwarp::verbs::detail
