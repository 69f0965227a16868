#include "verbs/queue_pair.hpp"

#include "verbs/detail/listener_state.hpp"
#include "verbs/detail/queue_pair_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

std::string_view to_string(qp_state state) noexcept {
  switch (state) {
    case qp_state::idle:
      return "idle";
    case qp_state::connecting:
      return "connecting";
    case qp_state::rts:
      return "rts";
    case qp_state::closing:
      return "closing";
    case qp_state::terminate:
      return "terminate";
    case qp_state::error:
      return "error";
  }
  return "?";
}

result<queue_pair> queue_pair::create(const protection_domain& pd, const completion_queue& send_cq,
                                      const completion_queue& receive_cq, const event_channel& channel,
                                      const queue_pair_options& options,
                                      const std::optional<shared_receive_queue>& shared) {
  const auto& context = pd.state()->context;
  if (send_cq.state()->context() != context || receive_cq.state()->context() != context ||
      channel.state()->context() != context || (shared && shared->state()->shared_pd()->context != context)) {
    return fail(errc::wrong_context);
  }
  if (options.max_send_requests == 0 || options.max_send_requests > max_queue_depth ||
      options.max_receive_requests > max_queue_depth) {
    return fail(errc::invalid_depth);
  }
  if (options.max_send_sge == 0 || options.max_send_sge > max_sge || options.max_receive_sge == 0 ||
      options.max_receive_sge > max_sge) {
    return fail(errc::invalid_sge_count);
  }
  if (options.max_inline > verbs::max_inline) return fail(errc::invalid_length);
  auto receives = shared ? shared->state()
                         : std::make_shared<detail::receive_queue>(pd.state(), options.max_receive_requests,
                                                                   options.max_receive_sge);
  return queue_pair{std::make_shared<detail::queue_pair_state>(pd.state(), send_cq.state(), receive_cq.state(),
                                                               channel.state(), std::move(receives), shared.has_value(),
                                                               options)};
}

queue_pair& queue_pair::operator=(queue_pair&& other) noexcept {
  queue_pair old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

queue_pair::~queue_pair() {
  if (state_ != nullptr) state_->destroy();
}

result<> queue_pair::post_send(const send_request& request) {
  std::size_t posted = 0;
  return state_->post_send({&request, 1}, posted);
}
result<> queue_pair::post_send(std::span<const send_request> requests, std::size_t& posted) {
  return state_->post_send(requests, posted);
}
result<> queue_pair::post_receive(const receive_request& request) {
  std::size_t posted = 0;
  return state_->post_receive({&request, 1}, posted);
}
result<> queue_pair::post_receive(std::span<const receive_request> requests, std::size_t& posted) {
  return state_->post_receive(requests, posted);
}

result<> queue_pair::post_send_all(std::span<const send_request> requests) { return state_->post_send_all(requests); }

result<> queue_pair::connect(const endpoint& peer, const connect_options& options) {
  return state_->connect(peer, options);
}

result<> queue_pair::accept(const connection_request& request, const accept_options& options) {
  const auto pending = std::static_pointer_cast<detail::pending_request>(request.handle());
  if (pending == nullptr || pending->answered.exchange(true)) return fail(errc::no_such_request);
  const auto outcome = state_->accept(*pending->context, pending->peer, options);
  // A caller's mistake leaves the Request open for another try.
  if (!outcome && outcome.error() != errc::no_such_request) pending->answered.store(false);
  return outcome;
}

result<> queue_pair::disconnect() { return state_->disconnect(); }
void queue_pair::abort() noexcept { state_->abort(); }
result<> queue_pair::reset() { return state_->reset(); }
qp_state queue_pair::state() const noexcept { return state_->state(); }
std::uint32_t queue_pair::number() const noexcept { return state_->number(); }

std::optional<rdmap::terminate_message> queue_pair::sent_terminate() const {
  std::optional<rdmap::terminate_message> found;
  state_->with_connection([&](detail::connection& c) { found = c.stream().sent_terminate(); });
  return found;
}
std::optional<rdmap::terminate_message> queue_pair::received_terminate() const {
  std::optional<rdmap::terminate_message> found;
  state_->with_connection([&](detail::connection& c) { found = c.stream().received_terminate(); });
  return found;
}
queue_pair_counters queue_pair::counters() const {
  queue_pair_counters found;
  state_->with_connection([&](detail::connection& c) {
    const rdmap::stream_counters from = c.stream().counters();
    found = {from.fpdus_in, from.fpdus_out, from.octets_in, from.octets_out, from.receive_holds};
  });
  return found;
}
std::uint16_t queue_pair::ird() const {
  std::uint16_t found = 0;
  state_->with_connection([&](detail::connection& c) { found = c.stream().agreement().ird; });
  return found;
}
std::uint16_t queue_pair::ord() const {
  std::uint16_t found = 0;
  state_->with_connection([&](detail::connection& c) { found = c.stream().agreement().ord; });
  return found;
}
bool queue_pair::held() const {
  bool found = false;
  state_->with_connection([&](detail::connection& c) { found = c.stream().held(); });
  return found;
}

}  // namespace iwarp::verbs
