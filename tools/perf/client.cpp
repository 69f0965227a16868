#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/latency.hpp"
#include "tools/common/session.hpp"
#include "tools/common/stop.hpp"
#include "tools/perf/commands.hpp"
#include "tools/perf/ping_pong.hpp"
#include "tools/perf/report.hpp"

namespace iwarp::tools::perf {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::uint64_t sync_id = 2;
constexpr auto patience = std::chrono::seconds(30);  // for a peer that makes no progress

class client {
 public:
  explicit client(const connect_command& command)
      : command_(command),
        size_(static_cast<std::uint32_t>(command.size)),
        depth_(static_cast<std::uint32_t>(command.depth)),
        batch_(std::max(1u, depth_ / 4)),
        context_(require(verbs::context::create(), "cannot start the iWARP stack")),
        source_(size_),
        sink_(size_),
        session_(context_, {.max_send_requests = depth_ + 1,
                            .max_receive_requests = 2,
                            .max_send_sge = 1,
                            .max_receive_sge = 1,
                            .max_inline = max_inline}),
        source_region_(
            require(verbs::memory_region::create_read_only(session_.pd(), source_), "cannot register memory")),
        sink_region_(require(verbs::memory_region::create(session_.pd(), sink_,
                                                          verbs::access::local_write | verbs::access::remote_write),
                             "cannot register memory")) {}

  void connect() {
    const parameters wanted{.op = command_.op,
                            .latency = command_.latency,
                            .size = size_,
                            .depth = depth_,
                            .buffer = sink_region_.remote()};
    std::array<std::byte, parameters::octets> private_data;
    wanted.emit(private_data);
    verbs::connect_options options;
    command_.flags.apply(options);
    options.private_data = private_data;
    options.ord = read_depth;
    session_.connect(resolve_peer(command_.where), options, [this] {
      post_receive();
      post_receive();
    });
    const auto granted = grant::parse(session_.established().private_data);
    if (!granted) throw failure(session_.peer_text() + " is not an iwarp-perf server of this version");
    remote_ = granted->buffer;
  }

  void measure() {
    const auto length = std::chrono::seconds(command_.seconds);
    if (command_.latency) {
      ping_pong(length / 10, nullptr);
      latency_histogram samples;
      const auto start = clock::now();
      const std::uint64_t rounds = ping_pong(length, &samples);
      show(clock::now() - start, rounds, &samples);
    } else {
      stream(length / 10);
      const auto start = clock::now();
      const std::uint64_t messages = stream(length);
      show(clock::now() - start, messages, nullptr);
    }
    session_.disconnect();
  }

 private:
  void show(clock::duration took, std::uint64_t messages, const latency_histogram* samples) const {
    print({.op = std::string(to_string(command_.op)),
           .size = size_,
           .depth = command_.latency ? 1 : depth_,
           .seconds = std::chrono::duration<double>(took).count(),
           .crc = session_.established().crc,
           .messages = messages,
           .latency = samples,
           .half_round_trip = command_.op != operation::read},
          command_.json);
  }

  // As fast as it goes: lists of a quarter of the depth, the last of each signaled. Ends when all has arrived.
  std::uint64_t stream(clock::duration length) {
    const verbs::sge element = (command_.op == operation::read ? sink_region_ : source_region_).element();
    verbs::send_request request = load_request();
    request.elements = {&element, 1};
    request.signaled = false;
    std::vector<verbs::send_request> list(batch_, request);
    list.back().signaled = true;

    const auto end = clock::now() + length;
    auto last_progress = clock::now();
    std::uint64_t messages = 0;
    for (std::uint32_t outstanding = 0;;) {
      const auto now = clock::now();
      if (now >= end && outstanding == 0) break;
      while (now < end && outstanding + batch_ <= depth_) {
        session_.post(list);
        outstanding += batch_;
      }
      const auto completed = static_cast<std::uint32_t>(poll()) * batch_;
      outstanding -= completed;
      messages += completed;
      if (completed > 0)
        last_progress = now;
      else if (now - last_progress > patience)
        throw failure("no progress: the connection with " + session_.peer_text() + " is stuck");
    }
    // The response to a Read comes after everything before it has been placed (RFC 5040 s5.5).
    if (command_.op != operation::read) synchronize();
    return messages;
  }

  void synchronize() {
    const verbs::sge element = sink_region_.element(0, 1);
    const verbs::send_request request{
        .id = sync_id, .op = verbs::opcode::rdma_read, .elements = {&element, 1}, .remote = remote_};
    session_.post({&request, 1});
    while (session_.next(patience, patience).id != sync_id) {
    }
  }

  std::uint64_t ping_pong(clock::duration length, latency_histogram* samples) {
    const auto end = clock::now() + length;
    const bool half = command_.op != operation::read;
    std::uint64_t rounds = 0;
    for (auto start = clock::now(); start < end; ++rounds) {
      one_round();
      const auto now = clock::now();
      if (samples != nullptr) samples->add((now - start) / (half ? 2 : 1));
      start = now;
    }
    return rounds;
  }

  void one_round() {
    const verbs::sge element = (command_.op == operation::read ? sink_region_ : source_region_).element();
    verbs::send_request request = load_request();
    request.elements = {&element, 1};
    const std::byte mark = mark_of(rounds_++);
    // Everything is complete in time, since the answer comes after it; signals only give the slots back.
    request.signaled = command_.op == operation::read || rounds_ % std::max(1u, depth_ / 2) == 0;
    source_.back() = mark;
    session_.post({&request, 1});
    const auto give_up = clock::now() + patience;
    for (std::uint64_t turn = 1; !round_done(mark); ++turn)
      if (turn % 65536 == 0 && clock::now() > give_up) throw failure("no answer from " + session_.peer_text());
  }

  bool round_done(std::byte mark) {
    const std::size_t count = poll();
    if (command_.op == operation::write) return has_arrived(sink_, mark);
    bool done = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (completions_[i].kind == verbs::completion_kind::receive) {
        post_receive();
        done = true;
      }
      if (completions_[i].kind == verbs::completion_kind::rdma_read) done = true;
    }
    return done;
  }

  verbs::send_request load_request() const {
    verbs::send_request request{.inline_data = size_ <= max_inline};
    switch (command_.op) {  // no default
      case operation::write:
        request.op = verbs::opcode::rdma_write;
        request.remote = remote_;
        break;
      case operation::read:
        request.op = verbs::opcode::rdma_read;
        request.remote = remote_;
        request.inline_data = false;
        break;
      case operation::send:
        request.op = verbs::opcode::send;
        break;
    }
    return request;
  }

  void post_receive() {
    const verbs::sge element = sink_region_.element();
    session_.post(verbs::receive_request{.elements = {&element, 1}});
  }

  std::size_t poll() {
    const std::size_t count = session_.cq().poll(completions_);
    if (count == 0 && stop_requested()) throw interrupted();
    for (std::size_t i = 0; i < count; ++i)
      if (completions_[i].status != verbs::status::success) session_.fail(completions_[i]);
    return count;
  }

  const connect_command& command_;
  std::uint32_t size_;
  std::uint32_t depth_;
  std::uint32_t batch_;
  verbs::context context_;
  std::vector<std::byte> source_;
  std::vector<std::byte> sink_;
  std::array<verbs::completion, 64> completions_ = {};
  std::uint64_t rounds_ = 0;
  verbs::remote_buffer remote_;
  session session_;
  verbs::memory_region source_region_;
  verbs::memory_region sink_region_;
};

}  // namespace

int run(const connect_command& command) {
  client load(command);
  load.connect();
  load.measure();
  return 0;
}

}  // namespace iwarp::tools::perf
