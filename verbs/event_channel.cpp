#include "verbs/event_channel.hpp"

#include "verbs/detail/context_state.hpp"
#include "verbs/detail/event_channel_state.hpp"

namespace iwarp::verbs {

std::string_view to_string(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::connect_request:
      return "connect request";
    case event_kind::established:
      return "established";
    case event_kind::rejected:
      return "rejected";
    case event_kind::unreachable:
      return "unreachable";
    case event_kind::connect_error:
      return "connect error";
    case event_kind::disconnected:
      return "disconnected";
    case event_kind::receive_limit:
      return "receive limit";
  }
  return "?";
}

result<event_channel> event_channel::create(const context& where) {
  IWARP_TRY(detail::event_descriptor descriptor, detail::event_descriptor::create());
  return event_channel{std::make_shared<detail::event_channel_state>(where.state(), std::move(descriptor))};
}

std::optional<connection_event> event_channel::poll() { return state_->pop(); }
result<connection_event> event_channel::wait(std::chrono::nanoseconds limit) { return state_->wait(limit); }
int event_channel::descriptor() const noexcept { return state_->descriptor(); }

}  // namespace iwarp::verbs
