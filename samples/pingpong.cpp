// iwarp-sample-pingpong: the smallest program that does RDMA. One side listens, the other connects; then a message goes
// back and forth, and both check what they get.
//
//   iwarp-sample-pingpong                                   both sides in this process, a thread each
//   iwarp-sample-pingpong --listen 192.0.2.1 --port 7471    one side here ...
//   iwarp-sample-pingpong --connect 192.0.2.1 --port 7471   ... the other elsewhere
//
// It teaches post and poll: memory is registered, requests are posted to a queue pair, completions are polled.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <vector>

#include "samples/support/must.hpp"
#include "verbs/verbs.hpp"

namespace {

using namespace iwarp;
using namespace std::chrono_literals;

struct settings {
  verbs::endpoint where;
  unsigned count = 1000;
  std::uint32_t size = 64;
};

/// What each side needs: the same everywhere.
struct side {
  verbs::context stack = must(verbs::context::create(), "context");
  verbs::protection_domain pd = verbs::protection_domain::create(stack);
  verbs::completion_queue done = must(verbs::completion_queue::create(stack, 16), "completion queue");
  verbs::event_channel events = must(verbs::event_channel::create(stack), "event channel");
  verbs::queue_pair pair = must(verbs::queue_pair::create(pd, done, done, events), "queue pair");

  /// Waits for an event of the connection.
  verbs::connection_event wait(verbs::event_kind kind) const {
    auto event = must(verbs::event_channel(events).wait(30s), "waiting for the peer");
    if (event.kind != kind) {
      throw std::runtime_error(fmt::format("{}: {}", to_string(event.kind), event.reason_text));
    }
    return event;
  }
  /// Polls until `receives` receives have completed. Polling makes progress as well: no thread has to wake up.
  void poll(unsigned receives) {
    for (verbs::completion c; receives != 0;) {
      if (done.poll({&c, 1}) == 0) continue;
      if (c.status != verbs::status::success) throw std::runtime_error(std::string(verbs::to_string(c.status)));
      if (c.kind == verbs::completion_kind::receive) --receives;
    }
  }
};

/// `leads`: sends first. Message i consists of octets of value i; the answer of those values inverted.
void play(side& me, const settings& how, bool leads) {
  std::vector<std::byte> in(how.size), out(how.size);
  const auto rights = verbs::access::local_write;
  const auto in_region = must(verbs::memory_region::create(me.pd, in, rights), "registering memory");
  const auto out_region = must(verbs::memory_region::create_read_only(me.pd, out), "registering memory");
  const verbs::sge in_element = in_region.element(), out_element = out_region.element();

  const auto began = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < how.count; ++i) {
    const auto ping = static_cast<std::byte>(i & 0xff), pong = ~ping;
    must(me.pair.post_receive({.id = i, .elements = {&in_element, 1}}), "posting a receive");
    if (!leads) me.poll(1);
    std::fill(out.begin(), out.end(), leads ? ping : pong);
    must(me.pair.post_send({.id = i, .elements = {&out_element, 1}}), "posting a send");
    if (leads) me.poll(1);
    for (const std::byte octet : in) {
      if (octet != (leads ? pong : ping)) throw std::runtime_error(fmt::format("message {} came damaged", i));
    }
  }
  if (!leads) return;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
  fmt::print("{} round trips of {} octets, all checked, {:.1f} us each\n", how.count, how.size,
             took.count() / how.count);
}

void serve(const settings& how, std::promise<verbs::endpoint>* told) {
  side me;
  const auto listener = must(verbs::listener::create(me.events, how.where), "listening");
  if (told != nullptr) told->set_value(listener.local());
  must(me.pair.accept(me.wait(verbs::event_kind::connect_request).request), "accepting");
  me.wait(verbs::event_kind::established);
  play(me, how, false);
  me.wait(verbs::event_kind::disconnected);
}

void connect(const settings& how) {
  side me;
  must(me.pair.connect(how.where), "connecting");
  me.wait(verbs::event_kind::established);
  play(me, how, true);
  must(me.pair.disconnect(), "disconnecting");
  me.wait(verbs::event_kind::disconnected);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"A checked RDMA ping-pong"};
  settings how;
  std::string listen, peer, at = "127.0.0.1";
  unsigned short port = 0;
  auto* listening = app.add_option("--listen", listen, "address to listen at; only this side");
  app.add_option("--connect", peer, "address of the other side; only this side")->excludes(listening);
  app.add_option("--port", port, "TCP port");
  app.add_option("--count", how.count, "round trips")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--size", how.size, "octets of a message")->capture_default_str()->check(CLI::Range(1u, 1u << 30));
  CLI11_PARSE(app, argc, argv)

  if (!listen.empty() || !peer.empty()) at = listen.empty() ? peer : listen;
  how.where = {boost::asio::ip::make_address(at), port};
  if (!listen.empty()) return serve(how, nullptr), 0;
  if (!peer.empty()) return connect(how), 0;
  std::promise<verbs::endpoint> listening_at;
  auto server = std::async(std::launch::async, serve, how, &listening_at);
  how.where = listening_at.get_future().get();
  connect(how);
  server.get();
} catch (const std::exception& e) {
  fmt::print(stderr, "iwarp-sample-pingpong: {}\n", e.what());
  return 1;
}
