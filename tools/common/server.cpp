#include "tools/common/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <list>
#include <new>
#include <system_error>
#include <thread>

#include "tools/common/failure.hpp"
#include "tools/common/peer.hpp"
#include "tools/common/stop.hpp"

namespace iwarp::tools {
namespace {

verbs::listener listen_at_first(const verbs::event_channel& channel, const serve_options& options) {
  const std::string what = "cannot listen on " + to_text(options.where);
  const auto addresses = require(tcp_glue::resolve(options.where, true), what);
  std::error_code first;
  for (const auto& address : addresses) {
    auto made = verbs::listener::create(channel, address, options.listen);
    if (made) return *std::move(made);
    if (!first) first = made.error();
  }
  throw failure(what + ": " + describe(first));
}

struct client_thread {
  std::atomic<bool> done{false};
  std::thread thread;
};

void run_client(const serve_client& client, const verbs::context& where, const verbs::connection_event& request) {
  const auto who = tcp_glue::to_string(request.remote);
  try {
    client(where, request);
  } catch (const interrupted&) {
  } catch (const peer_closed&) {
  } catch (const std::bad_alloc&) {
    complain(who + ": out of memory");
  } catch (const std::exception& problem) {
    const std::string text = problem.what();
    complain(text.find(who) == std::string::npos ? who + ": " + text : text);
  }
}

void join_done(std::list<client_thread>& clients) {
  for (auto i = clients.begin(); i != clients.end();) {
    if (i->done) {
      i->thread.join();
      i = clients.erase(i);
    } else {
      ++i;
    }
  }
}

void turn_away(const verbs::connection_event& request, std::string_view why) {
  // Fails when the peer has gone meanwhile, and that is well too.
  [[maybe_unused]] const auto rejected = verbs::reject(request.request, as_const_bytes(why.data(), why.size()));
}

}  // namespace

int serve(const serve_options& options, const serve_client& client) {
  // A reader of our output that goes away must not end the service of others.
  std::signal(SIGPIPE, SIG_IGN);
  const auto where = require(verbs::context::create({.domains = options.domains}), "cannot start the iWARP stack");
  auto channel = require(verbs::event_channel::create(where), "cannot make an event channel");
  std::list<client_thread> clients;
  {
    const auto listener = listen_at_first(channel, options);
    fmt::print("listening on {}\n", tcp_glue::to_string(listener.local()));
    std::fflush(stdout);
    try {
      for (std::uint64_t served = 0; options.connections == 0 || served < options.connections;) {
        auto event = channel.poll();
        if (!event) {
          const int descriptor = channel.descriptor();
          wait_readable({&descriptor, 1}, no_limit);
          continue;
        }
        if (event->kind != verbs::event_kind::connect_request) continue;
        join_done(clients);
        if (clients.size() >= options.max_clients) {
          turn_away(*event, "too many clients");
          continue;
        }
        client_thread& slot = clients.emplace_back();
        try {
          slot.thread = std::thread([&client, &slot, where, request = *event] {
            run_client(client, where, request);
            slot.done = true;
          });
          ++served;
        } catch (const std::system_error&) {
          clients.pop_back();
          turn_away(*event, "out of threads");
        }
      }
    } catch (const interrupted&) {
    }
    // Before the listener goes: it drops Requests that a thread has yet to answer.
    for (client_thread& each : clients) each.thread.join();
  }
  return 0;
}

}  // namespace iwarp::tools
