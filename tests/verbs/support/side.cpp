#include "tests/verbs/support/side.hpp"

#include <algorithm>

namespace iwarp::verbs_test {

namespace {

std::vector<node*>& nodes() {
  static std::vector<node*> all;
  return all;
}

template <class T>
T must(result<T> r, const char* what) {
  EXPECT_TRUE(r) << what << ": " << (r ? std::string() : r.error().message());
  return r ? *std::move(r) : T{};
}

verbs::context make_context(const setup& how, boost::asio::io_context* io) {
  auto made = verbs::context::create(
      {.progress = how.mode, .io = io, .domains = how.domains, .peer_timeout = how.peer_timeout});
  if (!made) throw std::system_error(made.error());
  return *made;
}

verbs::completion_queue make_queue(node& where, std::uint32_t depth) {
  auto made = verbs::completion_queue::create(where.context, depth);
  if (!made) throw std::system_error(made.error());
  return *made;
}

verbs::event_channel make_channel(node& where) {
  auto made = verbs::event_channel::create(where.context);
  if (!made) throw std::system_error(made.error());
  return *made;
}

}  // namespace

verbs::endpoint setup::loopback() const {
  return v6 ? verbs::endpoint{boost::asio::ip::address_v6::loopback(), 0}
            : verbs::endpoint{boost::asio::ip::address_v4::loopback(), 0};
}

std::vector<setup> all_setups() {
  return {{.name = "Automatic"},
          {.name = "AutomaticTwoDomainsV6", .domains = 2, .v6 = true},
          {.name = "Manual", .mode = verbs::progress_mode::manual}};
}

std::ostream& operator<<(std::ostream& out, const setup& s) { return out << s.name; }
std::string setup_name(const testing::TestParamInfo<setup>& info) { return info.param.name; }

node::node(const setup& how)
    : io_(how.mode == verbs::progress_mode::manual ? std::make_unique<boost::asio::io_context>() : nullptr),
      context(make_context(how, io_.get())),
      pd(verbs::protection_domain::create(context)) {
  nodes().push_back(this);
}

node::~node() { std::erase(nodes(), this); }

void node::drive() {
  if (io_ == nullptr) return;
  if (io_->stopped()) io_->restart();
  io_->poll();
}

void node::drive_all() {
  for (node* n : nodes()) n->drive();
}

// Sides ---------------------------------------------------------------------------------------------------------------

side::side(node& where, const side_options& options)
    : home(where),
      memory(options.memory),
      region(must(verbs::memory_region::create(where.pd, memory.bytes(), options.rights), "memory_region::create")),
      cq(make_queue(where, options.cq_depth)),
      channel(make_channel(where)),
      qp(must(verbs::queue_pair::create(where.pd, cq, cq, channel, options.qp, options.receives),
              "queue_pair::create")) {}

result<> side::try_send(std::uint64_t id, verbs::send_request request) {
  request.id = id;
  auto outcome = qp.post_send(request);
  if (!outcome) return outcome;
  auto kind = verbs::completion_kind::send;
  switch (request.op) {
    case verbs::opcode::send:
    case verbs::opcode::send_with_invalidate:
      break;
    case verbs::opcode::rdma_write:
      kind = verbs::completion_kind::rdma_write;
      break;
    case verbs::opcode::rdma_read:
      kind = verbs::completion_kind::rdma_read;
      break;
    case verbs::opcode::local_invalidate:
      kind = verbs::completion_kind::local_invalidate;
      break;
  }
  ledger.sent(id, kind, request.signaled);
  return outcome;
}

void side::send(std::uint64_t id, verbs::send_request request) {
  const auto outcome = try_send(id, request);
  EXPECT_TRUE(outcome) << "send request " << id << ": " << outcome.error().message();
}

void side::send(std::uint64_t id, std::size_t at, std::uint32_t size, bool signaled) {
  const verbs::sge element = region.element(at, size);
  send(id, {.signaled = signaled, .elements = {&element, 1}});
}

void side::write(std::uint64_t id, std::size_t at, std::uint32_t size, verbs::remote_buffer to, bool signaled) {
  const verbs::sge element = region.element(at, size);
  send(id, {.op = verbs::opcode::rdma_write, .signaled = signaled, .elements = {&element, 1}, .remote = to});
}

void side::read(std::uint64_t id, std::size_t at, std::uint32_t size, verbs::remote_buffer from) {
  const verbs::sge element = region.element(at, size);
  send(id, {.op = verbs::opcode::rdma_read, .elements = {&element, 1}, .remote = from});
}

void side::receive(std::uint64_t id, std::size_t at, std::uint32_t size) {
  const verbs::sge element = region.element(at, size);
  // A receive may complete before the post returns.
  ledger.received(id);
  const auto outcome = qp.post_receive({.id = id, .elements = {&element, 1}});
  EXPECT_TRUE(outcome) << "receive " << id << ": " << outcome.error().message();
}

void side::poll() {
  for (const verbs::completion& c : poll_poisoned(cq)) {
    ledger.note(c);
    arrived.push_back(c);
  }
}

verbs::completion side::completion(std::chrono::nanoseconds limit) {
  const bool there = wait_until(
      [&] {
        if (arrived.empty()) poll();
        return !arrived.empty();
      },
      limit);
  EXPECT_TRUE(there) << "no completion came";
  if (!there) return {.id = ~std::uint64_t{0}};
  const verbs::completion first = arrived.front();
  arrived.pop_front();
  return first;
}

void side::expect(std::uint64_t id, verbs::status status) {
  const auto c = completion();
  EXPECT_EQ(c.id, id);
  EXPECT_EQ(c.status, status) << "request " << c.id << ": " << verbs::to_string(c.status);
  EXPECT_EQ(c.qp_number, qp.number());
}

bool side::settle(std::chrono::nanoseconds limit) {
  return wait_until(
      [&] {
        poll();
        return ledger.outstanding() == 0;
      },
      limit);
}

verbs::connection_event next_event(verbs::event_channel& channel, std::chrono::nanoseconds limit) {
  std::optional<verbs::connection_event> found;
  const bool there = wait_until([&] { return (found = channel.poll()).has_value(); }, limit);
  EXPECT_TRUE(there) << "no event came";
  return found.value_or(verbs::connection_event{});
}

bool stays_quiet(verbs::event_channel& channel, std::chrono::nanoseconds for_how_long) {
  return !wait_until([&] { return channel.poll().has_value(); }, for_how_long);
}

verbs::connection_event side::event(std::chrono::nanoseconds limit) { return next_event(channel, limit); }

verbs::connection_event side::expect(verbs::event_kind kind) {
  auto e = event();
  EXPECT_EQ(e.kind, kind) << verbs::to_string(e.kind) << " " << e.reason_text;
  EXPECT_EQ(e.qp_number, qp.number());
  EXPECT_EQ(e.reason_text.empty(), !e.reason) << e.reason_text;
  return e;
}

bool side::wait_state(verbs::qp_state state, std::chrono::nanoseconds limit) {
  return wait_until([&] { return qp.state() == state; }, limit);
}

// Pairs ---------------------------------------------------------------------------------------------------------------

connected_pair::connected_pair(const pair_options& how)
    : options(how),
      server_node(how.how),
      listening(make_channel(server_node)),
      listener(must(verbs::listener::create(listening, how.how.loopback(), how.listen), "listener::create")),
      server(server_node, how.server),
      client((how.one_context ? server_node : client_node.emplace(how.how)), how.client) {
  connect();
}

void connected_pair::connect() {
  const auto begun = client.qp.connect(listener.local(), options.connect);
  ASSERT_TRUE(begun) << begun.error().message();
  request = next_event(listening);
  ASSERT_EQ(request.kind, verbs::event_kind::connect_request);
  const auto accepted = server.qp.accept(request.request, options.accept);
  ASSERT_TRUE(accepted) << accepted.error().message();
  client_up = client.expect(verbs::event_kind::established);
  // With the peer-to-peer model the server's comes with the client's RTR.
  server_up = server.expect(verbs::event_kind::established);
  if (options.open) open();
}

void connected_pair::open() {
  const auto before = server.qp.counters().fpdus_in;
  // No trace in the ledger: it is this fixture's.
  ASSERT_TRUE(client.qp.post_send({.id = ~std::uint64_t{1}, .op = verbs::opcode::rdma_write, .signaled = true}));
  ASSERT_TRUE(wait_until([&] { return server.qp.counters().fpdus_in > before; }));
  ASSERT_TRUE(wait_until([&] {
    auto got = poll_poisoned(client.cq);
    return got.size() == 1 && got.front().status == verbs::status::success;
  }));
}

void connected_pair::disconnect() {
  const auto begun = client.qp.disconnect();
  ASSERT_TRUE(begun) << begun.error().message();
  const auto here = client.expect(verbs::event_kind::disconnected);
  const auto there = server.expect(verbs::event_kind::disconnected);
  EXPECT_FALSE(here.reason) << here.reason_text;
  EXPECT_FALSE(there.reason) << there.reason_text;
  EXPECT_TRUE(client.wait_state(verbs::qp_state::idle));
  EXPECT_TRUE(server.wait_state(verbs::qp_state::idle));
}

}  // namespace iwarp::verbs_test
