// Public API.
// A context is one instance of the stack in a process: its progress domains, its STag table, its defaults.
// Threading: every function from any thread.  Time: the system's steady clock.  I/O: its own thread, or the caller's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

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
  /// A peer whose TCP is silent for about so long although it should answer is dead, and its connections are lost with
  /// TCP's timed_out. A peer that answers but takes nothing is not. 0..3600 s; 0: as the kernel has it, which is many
  /// minutes for what was sent, and hours for an idle connection.
  std::chrono::seconds peer_timeout{60};
  /// Records every connection of this context to this file, as a pcap with synthetic IP and TCP headers that Wireshark
  /// and iwarp-dump open; no root. "%p" in it becomes the process id. An existing file is replaced, but one that is
  /// being recorded to is refused. Empty: what the environment variable IWARP_PCAP says (the same syntax; one file for
  /// the whole process; ignored in set-user-ID programs), and without it nothing is recorded.
  std::string record_to = {};
};

/// Shared handle: copies mean the same context. Lives as long as the last object made from it.
class context {
 public:
  /// Errors: invalid_argument (manual without io, automatic with io, domains or peer_timeout out of range; random
  /// source failed); recording_failed (the file of record_to or IWARP_PCAP cannot be made).
  static result<context> create(const context_options& options = {});

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::context_state>& state() const noexcept { return state_; }

 private:
  explicit context(std::shared_ptr<detail::context_state> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::context_state> state_;
};

}  // namespace iwarp::verbs
