// iwarp-perf: how fast are Writes, Reads and Sends between two processes?
#include <fmt/format.h>

#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/common/stop.hpp"
#include "tools/perf/commands.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::tools;

void add_operation(CLI::App& app, perf::operation& target) {
  const auto take = [&target](const std::string& text) {
    for (const auto op : {perf::operation::write, perf::operation::read, perf::operation::send}) {
      if (text != perf::to_string(op)) continue;
      target = op;
      return;
    }
    throw CLI::ValidationError("--op", fmt::format("expected write, read or send, got \"{}\"", text));
  };
  app.add_option_function<std::string>("--op", take, "RDMA Write, RDMA Read or Send. Default: write")
      ->type_name("write|read|send")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

int program(int argc, char** argv) {
  CLI::App app("Measures throughput, message rate or latency of iWARP operations.", "iwarp-perf");
  perf::serve_command serving;
  auto* serve = app.add_subcommand("serve", "The other end of the measurements of any number of clients");
  serving.options.where.port = perf::default_port;
  add_address(*serve, "--listen", serving.options.where, perf::default_port,
              "Where to listen. Port 0: one that is free. Default: every address, port 7176");
  add_number(*serve, "-C,--count", serving.options.connections, 1, 1'000'000'000,
             "Serve so many connections, then exit. Default: until SIGINT or SIGTERM");
  add_on_off(*serve, "--poll", serving.poll,
             "on: a thread polls for every client, for the best latency; off: it sleeps, and the stack's own thread "
             "serves Writes and Reads (ping-pongs poll all the same). Default: on");
  serving.flags.add_to_server(*serve);
  serving.options.max_clients = 64;

  perf::connect_command connecting;
  auto* connect = app.add_subcommand("connect", "Load a server and print what was reached");
  add_address(*connect, "ADDR", connecting.where, perf::default_port, "The server. Default port: 7176")->required();
  add_operation(*connect, connecting.op);
  add_number(*connect, "--size", connecting.size, 1, perf::max_size, "Octets of a message. Default: 64K", true);
  add_number(*connect, "--depth", connecting.depth, 1, perf::max_depth,
             "Messages on their way at once; not with --latency. Default: 64");
  add_number(*connect, "--seconds", connecting.seconds, 1, 86400, "Measure so long. Default: 5");
  connect->add_flag("--latency", connecting.latency,
                    "Send one message at a time and wait for the answer. send, write: a ping-pong, half of the round "
                    "trip counts; read: the whole Read counts");
  connect->add_flag("--json", connecting.json,
                    "Print one JSON object: op, size, depth, seconds, crc, messages, octets, mb_per_s (10^6 octets), "
                    "messages_per_s; with --latency also latency_us with min, p50, p90, p99, p999, max");
  connecting.flags.add_to_client(*connect);

  prepare(app,
          "  iwarp-perf serve                                              on port 7176 of every address\n"
          "  iwarp-perf connect 192.0.2.1 --op write --size 1M --depth 16  throughput of large Writes\n"
          "  iwarp-perf connect 192.0.2.1 --op write --size 64 --depth 128 rate of small Writes\n"
          "  iwarp-perf connect 192.0.2.1 --op send --size 64 --latency    half round trip of small Sends\n");
  if (const auto code = parse(app, argc, argv)) return *code;
  stop_on_signals();
  return *serve ? perf::run(serving) : perf::run(connecting);
}

}  // namespace

int main(int argc, char** argv) {
  return iwarp::tools::run_program("iwarp-perf", [&] { return program(argc, argv); });
}
