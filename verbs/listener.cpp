#include "verbs/listener.hpp"

#include <unistd.h>

#include "mpa/startup_frame.hpp"
#include "verbs/detail/listener_state.hpp"
#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

namespace {

result<> check(const listen_options& options) {
  IWARP_CHECK(detail::queue_pair_state::check(options));
  if (options.mpa_revision != 1 && options.mpa_revision != 2) return fail(errc::invalid_revision);
  if (options.max_pending == 0) return fail(errc::invalid_argument);
  return {};
}

}  // namespace

result<listener> listener::create(const event_channel& channel, const endpoint& where, const listen_options& options) {
  if (const auto fine = check(options); !fine) {
    if (options.socket >= 0) ::close(options.socket);
    return fail(fine.error());
  }
  auto state = std::make_shared<detail::listener_state>(channel.state(), options);
  IWARP_CHECK(state->open(where));
  return listener{std::move(state)};
}

listener& listener::operator=(listener&& other) noexcept {
  listener old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

listener::~listener() {
  if (state_ != nullptr) state_->close();
}

endpoint listener::local() const { return state_->local(); }

result<> reject(const connection_request& request, const_bytes private_data) {
  const auto pending = std::static_pointer_cast<detail::pending_request>(request.handle());
  if (pending == nullptr || pending->answered.exchange(true)) return fail(errc::no_such_request);
  const detail::domain::turn here(pending->peer->home());
  rdmap::stream& stream = pending->peer->stream();
  if (pending->peer->closed() || stream.state() != rdmap::stream_state::deciding) return fail(errc::no_such_request);
  const std::size_t most = stream.peer_frame().header.enhanced ? mpa::max_enhanced_ulp_data : mpa::max_private_data;
  if (private_data.size() > most) {
    pending->answered.store(false);
    return fail(errc::invalid_private_data);
  }
  stream.reject(private_data, detail::domain::now());
  pending->peer->service(detail::domain::now());
  return {};
}

}  // namespace iwarp::verbs
