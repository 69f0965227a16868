// Part of the programs.
// SIGINT and SIGTERM as a flag and a descriptor, so that everything that waits can end cleanly.
// Threading: every function from any thread.  Time: none.  I/O: an eventfd.
#pragma once

#include <chrono>
#include <span>

namespace iwarp::tools {

/// Installs the handlers. Call once, before any thread is made. A second signal ends the program at once.
void stop_on_signals();
[[nodiscard]] bool stop_requested() noexcept;
/// Readable once a signal came, for ever.
[[nodiscard]] int stop_descriptor() noexcept;

/// No limit for wait_readable().
inline constexpr std::chrono::nanoseconds no_limit = std::chrono::nanoseconds::max();

/// Waits until one of the descriptors is readable or the limit is over (false). Throws interrupted when a signal came.
bool wait_readable(std::span<const int> descriptors, std::chrono::nanoseconds limit);

}  // namespace iwarp::tools
