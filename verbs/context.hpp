// Public API.
// A context is one instance of the stack in a process: its progress domains, its STag table, its defaults.
// Threading: every function from any thread.  Time: the system's steady clock.  I/O: its own thread, or the caller's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>

#include "base/result.hpp"

namespace iwarp::verbs {

namespace detail {
class context_state;
}

enum class progress_mode : std::uint8_t {
  automatic,  ///< a background thread per domain serves what nobody polls
  manual,     ///< no thread: the program runs the io_context, and polls
};

struct context_options {
  progress_mode progress = progress_mode::automatic;
  /// manual: the program's own io_context, which must outlive the context. automatic: must be null.
  boost::asio::io_context* io = nullptr;
  /// automatic: progress domains, each a lock and a thread; connections spread over them. 1..64.
  unsigned domains = 1;
};

/// Shared handle: copies mean the same context. Lives as long as the last object made from it.
class context {
 public:
  /// Errors: invalid_argument (manual without io, automatic with io, domains out of range; random source failed).
  static result<context> create(const context_options& options = {});

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::context_state>& state() const noexcept { return state_; }

 private:
  explicit context(std::shared_ptr<detail::context_state> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::context_state> state_;
};

}  // namespace iwarp::verbs
