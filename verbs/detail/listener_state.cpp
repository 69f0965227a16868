#include "verbs/detail/listener_state.hpp"

#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs::detail {

pending_request::~pending_request() {
  if (answered.exchange(true)) return;
  const domain::turn here(peer->home());
  if (peer->closed() || peer->stream().state() != rdmap::stream_state::deciding) return;
  peer->stream().reject({}, domain::now());
  peer->service(domain::now());
}

listener_state::listener_state(std::shared_ptr<event_channel_state> channel, const listen_options& options)
    : channel_(std::move(channel)), options_(options) {}

result<> listener_state::open(const endpoint& where) {
  const auto context = channel_->context();
  tcp_glue::listen_options how{.backlog = options_.backlog, .v6_only = options_.v6_only, .socket = options_.socket};
  how.executor_for_next = [gate = gate_, first = boost::asio::any_io_executor(context->io().get_executor())] {
    const std::lock_guard lock(gate->mutex);
    if (gate->owner == nullptr) return first;  // closed meanwhile: the connection is dropped, but needs one until then
    listener_state& self = *gate->owner;
    self.next_home_ = self.channel_->context()->next_domain();
    return boost::asio::any_io_executor(self.next_home_->io().get_executor());
  };
  gate_->owner = this;
  auto opened = tcp_glue::acceptor::open(context->io().get_executor(), where, how);
  if (!opened) {
    if (opened.error() == std::errc::address_in_use) return fail(errc::address_in_use);
    return fail(opened.error());
  }
  acceptor_ = std::move(*opened);
  acceptor_->start([gate = gate_](std::unique_ptr<tcp_glue::transport> transport) {
    const std::lock_guard lock(gate->mutex);
    if (gate->owner != nullptr) gate->owner->accepted(std::move(transport));
  });
  return {};
}

void listener_state::accepted(std::unique_ptr<tcp_glue::transport> transport) {
  const std::shared_ptr<domain> home = std::move(next_home_);
  const auto c = connection::make(home, channel_->context()->recorded(std::move(transport), tcp_glue::opener::remote),
                                  queue_pair_state::stream_options_for(options_, options_.mpa_revision));
  const domain::turn here(*home);
  c->listener = this;
  count_pending(true);
  const timestamp now = domain::now();
  c->stream().respond(now);
  home->add(c);
  c->service(now);
}

void listener_state::let_go(connection& c) noexcept {
  c.listener = nullptr;
  count_pending(false);
}

void listener_state::count_pending(bool one_more) noexcept {
  const std::lock_guard lock(pending_mutex_);
  if (one_more) {
    ++pending_;
  } else {
    --pending_;
  }
  const bool pause = pending_ >= options_.max_pending;
  if (pause == paused_) return;
  paused_ = pause;
  if (pause) {
    acceptor_->pause();
  } else {
    acceptor_->resume();
  }
}

void listener_state::stream_event(connection& c, rdmap::stream_event event) noexcept {
  switch (event) {
    case rdmap::stream_event::request: {
      auto pending = std::make_shared<pending_request>();
      pending->context = channel_->context();
      pending->peer = c.shared_from_this();
      const mpa::startup_frame& frame = c.stream().peer_frame();
      connection_event made{.kind = event_kind::connect_request, .user_data = options_.user_data};
      const const_bytes data = frame.private_data();
      made.private_data.assign(data.begin(), data.end());
      made.mpa_revision = frame.header.revision;
      if (frame.enhanced) {
        made.peer_ird = frame.enhanced->ird;
        made.peer_ord = frame.enhanced->ord;
      }
      made.local = c.local();
      made.remote = c.remote();
      made.request = connection_request{std::move(pending)};
      channel_->push(std::move(made));
      return;
    }
    case rdmap::stream_event::failed:  // a peer that spoke no iWARP, was too slow, or went away: nobody's loss
    case rdmap::stream_event::closed:
      if (c.listener != nullptr) let_go(c);
      return;
    case rdmap::stream_event::established:
    case rdmap::stream_event::disconnected:
      return;
  }
}

void listener_state::close() noexcept {
  {
    const std::lock_guard lock(gate_->mutex);
    gate_->owner = nullptr;
  }
  if (acceptor_ != nullptr) acceptor_->close();
  for (const auto& d : channel_->context()->domains()) {
    const domain::turn here(*d);
    for (std::size_t i = d->connections().size(); i != 0; --i) {
      if (i > d->connections().size()) continue;
      const std::shared_ptr<connection> c = d->connections()[i - 1];
      if (c->listener != this) continue;
      c->listener = nullptr;
      c->stream().abort(domain::now());
      c->service(domain::now());
    }
  }
}

}  // namespace iwarp::verbs::detail
