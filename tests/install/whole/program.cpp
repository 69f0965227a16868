// A user's program outside the tree: it sees installed headers and libraries only. It writes into the memory of a
// second queue pair over 127.0.0.1.
#include "verbs/verbs.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

using namespace iwarp;

template <class T>
T checked(result<T> got, const char* what) {
  if (got) return std::move(*got);
  std::fprintf(stderr, "%s: %s\n", what, got.error().message().c_str());
  std::exit(1);
}

void checked(const result<>& got, const char* what) {
  if (got) return;
  std::fprintf(stderr, "%s: %s\n", what, got.error().message().c_str());
  std::exit(1);
}

verbs::connection_event expect(verbs::event_channel& channel, verbs::event_kind kind) {
  auto event = checked(channel.wait(std::chrono::seconds(10)), "waiting for an event");
  if (event.kind == kind) return event;
  std::fprintf(stderr, "event %s: %s\n", std::string(verbs::to_string(event.kind)).c_str(), event.reason_text.c_str());
  std::exit(1);
}

}  // namespace

int main() {
  const auto context = checked(verbs::context::create(), "context");
  const auto pd = verbs::protection_domain::create(context);
  auto queue = checked(verbs::completion_queue::create(context, 256), "completion queue");
  auto channel = checked(verbs::event_channel::create(context), "event channel");
  auto client_events = checked(verbs::event_channel::create(context), "event channel");

  std::array<std::byte, 4096> source;
  source.fill(std::byte{0x5a});
  std::array<std::byte, 4096> target{};
  const auto from = checked(verbs::memory_region::create_read_only(pd, source), "source region");
  using verbs::access;
  const auto to =
      checked(verbs::memory_region::create(pd, target, access::local_write | access::remote_write), "target");

  const auto listener =
      checked(verbs::listener::create(channel, {boost::asio::ip::address_v4::loopback(), 0}), "listener");
  auto server = checked(verbs::queue_pair::create(pd, queue, queue, channel), "server queue pair");
  auto client = checked(verbs::queue_pair::create(pd, queue, queue, client_events), "client queue pair");
  checked(client.connect(listener.local()), "connect");
  checked(server.accept(expect(channel, verbs::event_kind::connect_request).request), "accept");
  expect(channel, verbs::event_kind::established);
  expect(client_events, verbs::event_kind::established);

  // A graceful close carries everything out first, so once the server sees it the octets are in place.
  const std::array<verbs::sge, 1> element{from.element()};
  checked(client.post_send({.id = 1, .op = verbs::opcode::rdma_write, .elements = element, .remote = to.remote()}),
          "post");
  checked(client.disconnect(), "disconnect");
  expect(channel, verbs::event_kind::disconnected);

  verbs::completion done;
  while (queue.poll({&done, 1}) == 0) {
  }
  const bool right = done.id == 1 && done.status == verbs::status::success && target == source;
  std::printf("RDMA Write of %zu octets: %s\n", source.size(), right ? "in place" : "WRONG");
  return right ? 0 : 1;
}
