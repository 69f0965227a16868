// Internal to tests.
// Two streams joined through tcp_glue's in-memory link and its driver, in virtual time: side a initiates, side b
// responds and accepts.
// Threading: not thread-safe; one caller at a time.  Time: the link's.  I/O: none.
#pragma once

#include <functional>

#include "tcp_glue/memory_link.hpp"
#include "tcp_glue/pair_runner.hpp"
#include "tests/rdmap/stream_side.hpp"

namespace iwarp::stream_test {

struct pair_options {
  rdmap::stream_options a, b;
  side_sizes sizes;
  std::uint32_t emss = 1448;
  std::size_t read_limit = SIZE_MAX;
};

class engine_pair {
 public:
  explicit engine_pair(const pair_options& options = {});

  using link_side = tcp_glue::memory_link::side;
  stream_side a;
  stream_side b;
  tcp_glue::memory_link link;
  tcp_glue::pair_runner runner;
  /// What b does with the Request; by default it accepts with its own IRD and ORD and without private data.
  std::function<void()> decide;
  octets request_data;  ///< a's private data
  octets reply_data;    ///< b's, when `decide` is not set

  /// Runs the start-up. Fails the test unless both sides are established.
  void connect();
  /// The same without looking at the result.
  void try_connect();
  /// Runs until nothing is left to do now: time moves only to what is under way, not to deadlines.
  void settle(std::size_t max_steps = 2'000'000);
  /// Runs on into deadlines, until nothing is left to do at all.
  void run_out(std::size_t max_steps = 2'000'000);

 private:
  rdmap::stream_options b_options_;
};

}  // namespace iwarp::stream_test
