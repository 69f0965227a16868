// Internal to tests.
// Keeps the books of one queue pair: each signaled request completes exactly once and in the order it was posted, an
// unsignaled one only when it fails, and at most one of a connection ends in another way than success or flushed.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <deque>

#include "verbs/verbs.hpp"

namespace iwarp::verbs_test {

class completion_ledger {
 public:
  void sent(std::uint64_t id, verbs::completion_kind kind, bool signaled) { sends_.push_back({id, kind, signaled}); }
  void received(std::uint64_t id) { receives_.push_back({id, verbs::completion_kind::receive, true}); }
  /// Fails the test when the books do not agree.
  void note(const verbs::completion& c);
  /// Requests that must still complete. Unsignaled ones count only while a signaled one stands behind them.
  [[nodiscard]] std::size_t outstanding() const noexcept;
  /// A new connection: one more request may fail.
  void forgive() noexcept { failures_ = 0; }
  [[nodiscard]] std::size_t failures() const noexcept { return failures_; }

 private:
  struct entry {
    std::uint64_t id;
    verbs::completion_kind kind;
    bool signaled;
  };
  std::deque<entry> sends_;
  std::deque<entry> receives_;
  std::size_t failures_ = 0;
};

/// Polls at most 8 completions into an array poisoned with 0xA5 and fails the test when a poll writes behind what it
/// returns.
std::deque<verbs::completion> poll_poisoned(verbs::completion_queue& queue);

}  // namespace iwarp::verbs_test
