// iwarp-ping: is there an iWARP peer, do all the operations work, and how long does a round take? Speaks rping's
// exchange, so that either end may be the rping of rdmacm-utils.
#include <fmt/format.h>

#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/common/stop.hpp"
#include "tools/ping/commands.hpp"
#include "tools/ping/protocol.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::tools;

int program(int argc, char** argv) {
  CLI::App app(
      "Pings an iWARP peer with Sends, an RDMA Read and an RDMA Write each round, and checks the data.\n"
      "Understands the rping of rdmacm-utils at the other end, as client and as server.",
      "iwarp-ping");
  ping::serve_command serving;
  auto* serve = app.add_subcommand("serve", "Answer pings of iwarp-ping and rping clients, any number at once");
  serving.options.where.port = ping::default_port;
  add_address(*serve, "--listen", serving.options.where, ping::default_port,
              "Where to listen. Port 0: one that is free. Default: every address, port 7174");
  add_number(*serve, "-C,--count", serving.options.connections, 1, 1'000'000'000,
             "Serve so many connections, then exit. Default: until SIGINT or SIGTERM");
  serve->add_flag("-v,--verbose", serving.verbose, "Print the data of every ping");
  serving.flags.add_to_server(*serve);

  ping::connect_command connecting;
  auto* connect = app.add_subcommand("connect", "Ping a server and print round-trip times");
  add_address(*connect, "ADDR", connecting.where, ping::default_port, "The server. Default port: 7174")->required();
  add_number(*connect, "-C,--count", connecting.count, 1, 1'000'000'000,
             "Ping so many times. Default: until SIGINT or SIGTERM");
  add_number(*connect, "-S,--size", connecting.size, 1, ping::max_size,
             fmt::format("Octets of data in a ping. rping servers take what their own -S says, at most {}. Default: 64",
                         ping::max_rping_size),
             true);
  add_number(*connect, "--timeout", connecting.timeout, 1, 3600,
             "Give up when a ping takes longer, seconds. Default: 10");
  connect->add_flag("-v,--verbose", connecting.verbose, "Print the data of every ping");
  connecting.flags.add_to_client(*connect);

  prepare(app,
          "  iwarp-ping serve                          answer on port 7174 of every address\n"
          "  iwarp-ping connect 192.0.2.1 -C 100       100 pings of 64 octets\n"
          "  iwarp-ping connect '[::1]:7174' -S 1M     pings of 1 MiB until Ctrl-C\n"
          "  rping -s -a 192.0.2.1 -v                  a server on a host with siw or an RNIC ...\n"
          "  iwarp-ping connect 192.0.2.1 -C 10        ... and its client here\n");
  if (const auto code = parse(app, argc, argv)) return *code;
  stop_on_signals();
  return *serve ? ping::run(serving) : ping::run(connecting);
}

}  // namespace

int main(int argc, char** argv) {
  return iwarp::tools::run_program("iwarp-ping", [&] { return program(argc, argv); });
}
