#include "verbs/context.hpp"

#include <openssl/rand.h>

#include "verbs/detail/context_state.hpp"
#include "verbs/detail/recording.hpp"
#include "verbs/error.hpp"

namespace iwarp::verbs {

result<context> context::create(const context_options& options) {
  const bool manual = options.progress == progress_mode::manual;
  if (manual != (options.io != nullptr)) return fail(errc::invalid_argument);
  if (options.domains == 0 || options.domains > detail::max_domains) return fail(errc::invalid_argument);
  if (options.peer_timeout.count() < 0 || options.peer_timeout > std::chrono::hours(1))
    return fail(errc::invalid_argument);
  if (RAND_status() != 1) return fail(errc::invalid_argument);
  auto recording = detail::open_recording(options.record_to);
  if (!recording) return fail(recording.error());
  return context{std::make_shared<detail::context_state>(options, *std::move(recording))};
}

}  // namespace iwarp::verbs
