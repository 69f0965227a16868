#include "verbs/shared_receive_queue.hpp"

#include "verbs/detail/receive_queue.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

result<shared_receive_queue> shared_receive_queue::create(const protection_domain& pd,
                                                          const shared_receive_queue_options& options) {
  if (options.max_requests == 0 || options.max_requests > max_queue_depth) return fail(errc::invalid_depth);
  if (options.max_sge == 0 || options.max_sge > max_sge) return fail(errc::invalid_sge_count);
  auto state = std::make_shared<detail::receive_queue>(pd.state(), options.max_requests, options.max_sge);
  state->set_limit_channel(options.channel, options.user_data);
  return shared_receive_queue{std::move(state)};
}

result<> shared_receive_queue::post(const receive_request& request) {
  std::size_t posted = 0;
  return state_->post({&request, 1}, posted);
}
result<> shared_receive_queue::post(std::span<const receive_request> requests, std::size_t& posted) {
  return state_->post(requests, posted);
}
void shared_receive_queue::arm_limit(std::uint32_t limit) noexcept { state_->arm_limit(limit); }
std::uint32_t shared_receive_queue::posted() const noexcept { return state_->posted(); }

}  // namespace iwarp::verbs
