#include "tcp_glue/pair_runner.hpp"

#include <algorithm>
#include <tuple>

namespace iwarp::tcp_glue {
namespace {

using side = memory_link::side;

// Everything by which a driver can show that it got on.
auto position(const driver& d) {
  return std::make_tuple(d.octets_received(), d.octets_sent(), d.closed(), d.write_shut(), d.read_ended());
}

}  // namespace

pair_runner::pair_runner(memory_link& link, mpa::stream_engine& a, mpa::stream_engine& b) noexcept
    : link_(link), engine_a_(a), engine_b_(b), a_(link.a(), a), b_(link.b(), b) {}

std::optional<std::size_t> pair_runner::run_until_idle(std::size_t max_steps, timestamp horizon) {
  for (std::size_t steps = 1; steps <= max_steps; ++steps) {
    bool moved = step(side::a);
    moved |= step(side::b);
    if (on_step) moved |= on_step();
    if (moved) continue;
    const auto next = next_time();
    if (next == never || next > horizon) return steps;
    link_.advance_to(next);
  }
  return std::nullopt;
}

bool pair_runner::step(side s) {
  driver& d = of(s);
  mpa::stream_engine& engine = engine_of(s);
  if (d.closed()) return false;
  const auto before = position(d);
  bool moved = false;
  if (engine.next_deadline() <= now()) {
    engine.handle_deadline(now());
    moved = true;
  }
  d.pump_tx(now(), tx_budget);
  // As an event loop would: reading is tried only when a wait for it would have ended.
  if (d.rx_wanted() && link_.readable(s)) {
    d.pump_rx(now(), rx_budget);
    d.pump_tx(now(), tx_budget);
  }
  return moved || position(d) != before;
}

timestamp pair_runner::next_time() noexcept {
  timestamp next = link_.next_arrival();
  for (const side s : {side::a, side::b})
    if (!of(s).closed()) next = std::min(next, engine_of(s).next_deadline());
  return next;
}

}  // namespace iwarp::tcp_glue
