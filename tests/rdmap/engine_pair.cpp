#include "tests/rdmap/engine_pair.hpp"

#include <gtest/gtest.h>

namespace iwarp::stream_test {

engine_pair::engine_pair(const pair_options& options)
    : a(options.a, options.sizes),
      b(options.b, options.sizes),
      runner(link, a.engine, b.engine),
      b_options_(options.b) {
  for (const auto s : {link_side::a, link_side::b}) {
    link.script_of(s).emss = options.emss;
    link.script_of(s).read_limit = options.read_limit;
  }
  runner.on_step = [this] {
    a.now = b.now = link.now();
    a.poll();
    for (const auto event : b.poll()) {
      if (event != rdmap::stream_event::request) continue;
      if (decide) {
        decide();
      } else {
        b.engine.accept(reply_data, b_options_.startup.ird, b_options_.startup.ord, b.now);
      }
      return true;
    }
    return false;
  };
}

void engine_pair::try_connect() {
  b.engine.respond(link.now());
  a.engine.initiate(request_data, link.now());
  settle();
}

void engine_pair::connect() {
  try_connect();
  ASSERT_TRUE(a.told(rdmap::stream_event::established)) << a.engine.error().message();
  ASSERT_TRUE(b.told(rdmap::stream_event::established)) << b.engine.error().message();
}

void engine_pair::settle(std::size_t max_steps) {
  // Deadlines lie at least this far away in every test that does not mean them to pass.
  const auto horizon = link.now() + std::chrono::milliseconds(400);
  ASSERT_TRUE(runner.run_until_idle(max_steps, horizon)) << "the pair never comes to rest";
}

void engine_pair::run_out(std::size_t max_steps) {
  ASSERT_TRUE(runner.run_until_idle(max_steps)) << "the pair never comes to rest";
}

}  // namespace iwarp::stream_test
