#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/session.hpp"
#include "tools/common/stop.hpp"
#include "tools/perf/commands.hpp"
#include "tools/perf/ping_pong.hpp"

namespace iwarp::tools::perf {
namespace {

constexpr std::uint32_t signal_every = 16;

class client_server {
 public:
  client_server(const verbs::context& where, const parameters& load, bool poll)
      : load_(load),
        receives_(load.op == operation::send ? std::max(2u, load.depth) : 1),
        poll_(poll),
        memory_(load.size),
        answer_(load.latency ? load.size : 1),
        session_(where, {.max_send_requests = 2 * signal_every,
                         .max_receive_requests = receives_,
                         .max_send_sge = 1,
                         .max_receive_sge = 1,
                         .max_inline = max_inline}),
        region_(require(verbs::memory_region::create(
                            session_.pd(), memory_,
                            verbs::access::local_write | verbs::access::remote_write | verbs::access::remote_read),
                        "cannot register memory")),
        answer_region_(
            require(verbs::memory_region::create_read_only(session_.pd(), answer_), "cannot register memory")) {}

  void run(const verbs::connection_event& request) {
    repost(receives_);
    std::array<std::byte, grant::octets> granted;
    grant{.buffer = region_.remote()}.emit(granted);
    session_.accept(request, {.private_data = granted, .ird = read_depth});
    if (load_.latency && load_.op == operation::send)
      answer_sends();
    else if (load_.latency && load_.op == operation::write)
      answer_writes();
    else
      take_all();
  }

 private:
  std::size_t poll() {
    const std::size_t count = session_.cq().poll(completions_);
    if (count == 0) {
      if (stop_requested()) throw interrupted();
      if (!poll_) std::this_thread::yield();
    }
    for (std::size_t i = 0; i < count; ++i)
      if (completions_[i].status != verbs::status::success) session_.fail(completions_[i]);
    return count;
  }

  void repost(std::uint32_t count) {
    const verbs::sge element = region_.element();
    const std::vector<verbs::receive_request> requests(count, {.id = 0, .elements = {&element, 1}});
    std::size_t posted = 0;
    require(session_.qp().post_receive(requests, posted), "cannot post to the receive queue");
  }

  // Throughput: Writes and Reads need nothing from us, Sends need receives.
  void take_all() {
    std::uint32_t used = 0;
    const std::uint32_t batch = std::max(1u, receives_ / 4);
    for (;;) {
      if (poll_) {
        used += static_cast<std::uint32_t>(poll());
      } else {
        session_.next(no_limit);
        ++used;
      }
      if (used >= batch) {
        repost(used);
        used = 0;
      }
    }
  }

  void answer_sends() {
    for (;;) {
      const std::size_t count = poll();
      for (std::size_t i = 0; i < count; ++i) {
        if (completions_[i].kind != verbs::completion_kind::receive) continue;
        post_answer({.op = verbs::opcode::send});
        repost(1);
      }
    }
  }

  void answer_writes() {
    for (std::uint64_t number = 0;; ++number) {
      const std::byte mark = mark_of(number);
      while (!has_arrived(memory_, mark)) poll();
      answer_.back() = mark;
      post_answer({.op = verbs::opcode::rdma_write, .remote = load_.buffer});
    }
  }

  void post_answer(verbs::send_request request) {
    const verbs::sge element = answer_region_.element();
    request.elements = {&element, 1};
    request.signaled = ++answers_ % signal_every == 0;
    request.inline_data = load_.size <= max_inline;
    session_.post({&request, 1});
  }

  parameters load_;
  std::uint32_t receives_;
  bool poll_;
  std::uint64_t answers_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::byte> answer_;
  std::array<verbs::completion, 64> completions_ = {};
  session session_;
  verbs::memory_region region_;
  verbs::memory_region answer_region_;
};

void turn_away(const verbs::connection_event& request) {
  constexpr std::string_view why = "not an iwarp-perf client of this version";
  // Fails when the peer has gone meanwhile, and that is well too.
  [[maybe_unused]] const auto rejected = verbs::reject(request.request, as_const_bytes(why.data(), why.size()));
}

}  // namespace

int run(serve_command command) {
  command.flags.apply(command.options.listen);
  command.options.listen.ird = read_depth;
  return serve(command.options, [poll = command.poll](const auto& where, const auto& request) {
    const auto load = parameters::parse(request.private_data);
    if (!load) {
      turn_away(request);
      throw failure("rejected: not an iwarp-perf client of this version");
    }
    client_server(where, *load, poll).run(request);
  });
}

}  // namespace iwarp::tools::perf
