// Part of iwarp-dump.
// Read and Atomic Requests of one side that wait for their responses, in order (RFC 5040 s5.2, RFC 7306 s5.4).
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "tools/dump/events.hpp"

namespace iwarp::dump {

struct pending_request {
  std::uint64_t message = 0;  // number
  std::uint64_t offset = 0;
  frame_ref frame;
  bool atomic = false;
  rdmap::read_request read{};
  std::uint32_t identifier = 0;  // of an Atomic
};

class request_ledger {
 public:
  /// More than any IRD there is: a capture without responses must not grow without end.
  static constexpr std::size_t most = 65536;

  void add(const pending_request& r) {
    if (waiting_.size() == most) waiting_.pop_front();
    waiting_.push_back(r);
  }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  [[nodiscard]] const pending_request* oldest() const noexcept {
    return waiting_.empty() ? nullptr : &waiting_.front();
  }
  [[nodiscard]] const std::deque<pending_request>& all() const noexcept { return waiting_; }
  void remove(std::size_t at) { waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at)); }
  void clear() { waiting_.clear(); }

 private:
  std::deque<pending_request> waiting_;
};

}  // namespace iwarp::dump
