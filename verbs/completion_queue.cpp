#include "verbs/completion_queue.hpp"

#include "verbs/detail/completion_queue_state.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

result<completion_queue> completion_queue::create(const context& where, std::uint32_t depth) {
  if (depth == 0 || depth > max_queue_depth * 4) return fail(errc::invalid_depth);
  IWARP_TRY(detail::event_descriptor descriptor, detail::event_descriptor::create());
  return completion_queue{
      std::make_shared<detail::completion_queue_state>(where.state(), std::move(descriptor), depth)};
}

std::size_t completion_queue::poll(std::span<completion> out) noexcept { return state_->poll(out); }
void completion_queue::arm(notify what) noexcept { state_->arm(what); }
int completion_queue::descriptor() const noexcept { return state_->descriptor(); }
bool completion_queue::acknowledge() noexcept { return state_->acknowledge(); }
bool completion_queue::overflowed() const noexcept { return state_->overflowed(); }
result<> completion_queue::resize(std::uint32_t depth) { return state_->resize(depth); }
std::uint32_t completion_queue::depth() const noexcept { return state_->depth(); }

}  // namespace iwarp::verbs
