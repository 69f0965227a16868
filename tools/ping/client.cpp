#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/latency.hpp"
#include "tools/common/session.hpp"
#include "tools/ping/commands.hpp"
#include "tools/ping/protocol.hpp"

namespace iwarp::tools::ping {
namespace {

using clock = std::chrono::steady_clock;

class client {
 public:
  explicit client(const connect_command& command)
      : command_(command),
        context_(require(verbs::context::create(), "cannot start the iWARP stack")),
        session_(context_, {.max_send_requests = 16, .max_receive_requests = 2, .max_inline = message_size}),
        incoming_(session_, 2, message_size),
        source_(command.size),
        sink_(command.size),
        source_region_(require(verbs::memory_region::create(session_.pd(), source_, verbs::access::remote_read),
                               "cannot register memory")),
        sink_region_(require(verbs::memory_region::create(session_.pd(), sink_,
                                                          verbs::access::local_write | verbs::access::remote_write),
                             "cannot register memory")) {}

  void connect() {
    verbs::connect_options options;
    command_.flags.apply(options);
    options.ird = 1;  // as rping has it
    options.ord = 1;
    session_.connect(resolve_peer(command_.where), options, [this] { incoming_.post_all(); });
  }

  void ping(std::uint64_t number) {
    fill(source_, number);
    std::fill(sink_.begin(), sink_.end(), std::byte{0xff});
    const auto start = clock::now();
    advertise(source_region_);
    wait_answer();
    advertise(sink_region_);
    wait_answer();
    round_trips_.add(clock::now() - start);
    if (source_ != sink_) {
      const auto at = std::mismatch(source_.begin(), source_.end(), sink_.begin()).first - source_.begin();
      throw failure(fmt::format("ping {}: the data that came back differs from what was sent, first at octet {} of {}",
                                number, at, source_.size()));
    }
    if (command_.verbose) fmt::print("ping data: {}\n", text_of(sink_));
  }

  void finish() { session_.disconnect(); }

  void report() const {
    fmt::print("{} pings of {} octets with {} ({}): min {:.1f} us, median {:.1f} us, p99 {:.1f} us\n",
               round_trips_.count(), command_.size, session_.peer_text(), describe_agreement(session_.established()),
               round_trips_.minimum(), round_trips_.percentile(0.5), round_trips_.percentile(0.99));
    std::fflush(stdout);
  }

 private:
  void advertise(const verbs::memory_region& region) {
    std::array<std::byte, message_size> message;
    advert{.buffer = region.remote(), .size = static_cast<std::uint32_t>(command_.size)}.emit(message);
    session_.send(message);
  }

  void wait_answer() {
    for (;;) {
      const auto done = session_.next(std::chrono::seconds(command_.timeout), std::chrono::milliseconds(1));
      if (done.kind != verbs::completion_kind::receive) continue;
      if (done.length != message_size)
        throw failure(fmt::format("{} sent {} octets where rping sends {}: not an rping server", session_.peer_text(),
                                  done.length, message_size));
      incoming_.post(done.id);
      return;
    }
  }

  const connect_command& command_;
  verbs::context context_;
  session session_;
  receive_buffers incoming_;
  std::vector<std::byte> source_;
  std::vector<std::byte> sink_;
  verbs::memory_region source_region_;
  verbs::memory_region sink_region_;
  latency_histogram round_trips_;
};

}  // namespace

int run(const connect_command& command) {
  client pinger(command);
  pinger.connect();
  try {
    for (std::uint64_t number = 0; command.count == 0 || number < command.count; ++number) pinger.ping(number);
  } catch (const interrupted&) {
    // An endless run ends so; one with a count did not do what it was asked.
    if (command.count != 0) throw;
  }
  pinger.finish();
  pinger.report();
  return 0;
}

}  // namespace iwarp::tools::ping
