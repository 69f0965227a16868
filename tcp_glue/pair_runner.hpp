// Internal to tcp_glue, verbs and tests.
// Drives two engines over a memory_link until neither has anything left to do, in virtual time and within a bound: a
// pair that never comes to rest is found, not waited for.
// Threading: not thread-safe; one caller at a time.  Time: the link's.  I/O: none.
#pragma once

#include "tcp_glue/driver.hpp"
#include "tcp_glue/memory_link.hpp"

#include <functional>
#include <optional>

namespace iwarp::tcp_glue {

class pair_runner {
 public:
  /// The link and both engines must outlive this object.
  pair_runner(memory_link& link, mpa::stream_engine& a, mpa::stream_engine& b) noexcept;

  /// Called once a step, to take events and give new work. Returns true when it did something that lets engines go on.
  std::function<bool()> on_step = {};
  /// Budgets of each pump, in octets.
  std::size_t rx_budget = driver::no_budget;
  std::size_t tx_budget = driver::no_budget;

  /// Steps both sides; when nothing moves, moves time to the next arrival or deadline that is not after `horizon`.
  /// Returns the steps taken until nothing was left, or nullopt when `max_steps` did not suffice.
  std::optional<std::size_t> run_until_idle(std::size_t max_steps, timestamp horizon = never);

  [[nodiscard]] driver& of(memory_link::side s) noexcept { return s == memory_link::side::a ? a_ : b_; }
  [[nodiscard]] driver& a() noexcept { return a_; }
  [[nodiscard]] driver& b() noexcept { return b_; }
  [[nodiscard]] timestamp now() const noexcept { return link_.now(); }

 private:
  bool step(memory_link::side s);
  [[nodiscard]] timestamp next_time() noexcept;
  [[nodiscard]] mpa::stream_engine& engine_of(memory_link::side s) noexcept {
    return s == memory_link::side::a ? engine_a_ : engine_b_;
  }

  memory_link& link_;
  mpa::stream_engine& engine_a_;
  mpa::stream_engine& engine_b_;
  driver a_;
  driver b_;
};

}  // namespace iwarp::tcp_glue
