// One connection over this project's verbs, step by step as told; runs outside the siw host. Its twin over librdmacm is
// siw_probe.c: both take the same words and print the same JSON lines.
//
//   ours_probe listen|connect ADDR PORT [--data HEX] [--ird N] [--ord N] [--answer accept|reject|ignore|gone|nobody]
//   [--count N]
//     [--crc on|off] [--markers on|off|prefer] [--p2p on|off] [--revision 1|2] STEP...
//
// Steps, once connected: send:N  last:N  recv:N  offer  take  write:N  check:N  reads:COUNT:N  stream  pull  hold
// disconnect  abort  exit  bad:N; here alone: solicited:N  invalidate:N, Sends that invalidate what was offered or wake
// bad: a Write with a key that the peer does not have.  last: a Send that the peer may answer by ending the connection,
// so that its completion may say anything.
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/hex.hpp"
#include "verbs/verbs.hpp"

namespace {

using namespace iwarp;
using namespace std::chrono_literals;
using json = nlohmann::json;

constexpr std::size_t buffer_size = 1 << 20;
constexpr std::size_t receive_size = 1 << 16;
constexpr std::uint32_t receives = 16;
constexpr std::uint32_t depth = 256;
constexpr std::uint64_t request_id = 1000;  // those of receives are lower
constexpr std::size_t offer_size = 24;

struct command_line {
  bool listens = false;
  tcp_glue::host_port where;
  std::vector<std::byte> data;
  std::string answer = "accept";
  int count = 1;
  std::chrono::seconds limit{8};  // for whatever is waited for
  verbs::connect_options options;
  std::vector<std::string> steps;
};

void say(const json& what) {
  std::puts(what.dump().c_str());
  std::fflush(stdout);
}

[[noreturn]] void give_up(const std::string& what, const std::string& why = {}) {
  say({{"failed", what}, {"why", why}});
  std::exit(1);
}

template <class T>
T need(result<T> value, const char* what) {
  if (!value) give_up(what, value.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(value);
}

std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 7 + (i >> 8)); }

bool right(const_bytes octets) {
  for (std::size_t i = 0; i < octets.size(); ++i)
    if (octets[i] != pattern(i)) return false;
  return true;
}

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class probe {
 public:
  explicit probe(const command_line& want)
      : want_(want),
        context_(need(verbs::context::create(), "context")),
        pd_(verbs::protection_domain::create(context_)),
        channel_(need(verbs::event_channel::create(context_), "event channel")) {
    using verbs::access;
    for (std::size_t i = 0; i < buffer_size; ++i) source_[i] = pattern(i);
    source_region_ = region(source_, access::local_write | access::remote_read);
    sink_region_ = region(sink_, access::local_write | access::remote_write);
    receive_region_ = region(receive_, access::local_write);
  }

  void connect_once() {
    make_queue_pair();
    const auto to = need(tcp_glue::resolve(want_.where, false), "resolve").front();
    verbs::connect_options options = want_.options;
    options.private_data = want_.data;
    need(qp_.connect(to, options), "connect");
    establish();
    run_steps();
    qp_ = {};
  }

  void listen_all() {
    verbs::listen_options options;
    static_cast<verbs::connection_options&>(options) = want_.options;
    const auto at = need(tcp_glue::resolve(want_.where, true), "resolve").front();
    auto requests = need(verbs::event_channel::create(context_), "event channel");
    const auto listener = need(verbs::listener::create(requests, at, options), "listener");
    say({{"event", "listening"}});
    const std::size_t before = descriptors();
    if (want_.answer == "nobody") return;
    for (int i = 0; i < want_.count; ++i) {
      auto request = need(requests.wait(want_.limit), "no request");
      say_event(request);
      if (want_.answer == "reject") {
        need(verbs::reject(request.request, want_.data), "reject");
        request = {};
        // A server lives on; the connection does until the peer has seen the Reply and closes.
        for (int tries = 0; tries < 100 && descriptors() > before; ++tries) (void)requests.wait(10ms);
      } else if (want_.answer == "gone") {
        std::_Exit(0);
      } else if (want_.answer == "ignore") {
        // Nothing tells a listener that a Request was given up; answering it does.
        (void)requests.wait(1s);
        qp_ = {};
        make_queue_pair();
        if (const auto late = qp_.accept(request.request); !late) {
          say({{"event", "accept failed"}, {"reason", late.error().message()}});
        } else {
          say_event(need(channel_.wait(want_.limit), "no event"));
        }
      } else {
        make_queue_pair();
        if (const auto accepted = qp_.accept(request.request, {.private_data = want_.data}); !accepted) {
          give_up("accept", accepted.error().message());
        }
        establish();
        run_steps();
        qp_ = {};
      }
    }
  }

 private:
  struct arrival {
    std::uint64_t slot;
    std::uint32_t size;
  };

  verbs::memory_region region(std::vector<std::byte>& memory, verbs::access rights) {
    return need(verbs::memory_region::create(pd_, memory, rights), "memory region");
  }

  void make_queue_pair() {
    arrived_.clear();
    gone_ = false;
    std::fill(sink_.begin(), sink_.end(), std::byte{0xA5});
    const auto made = need(verbs::completion_queue::create(context_, depth + receives), "completion queue");
    cq_.emplace(made);
    qp_ = need(verbs::queue_pair::create(pd_, made, made, channel_,
                                         {.max_send_requests = depth, .max_receive_requests = receives}),
               "queue pair");
    for (std::uint64_t slot = 0; slot < receives; ++slot) post_receive(slot);
  }

  void post_receive(std::uint64_t slot) {
    const verbs::sge element = receive_region_.element(slot * receive_size, receive_size);
    need(qp_.post_receive({.id = slot, .elements = {&element, 1}}), "post_receive");
  }

  void establish() {
    const auto event = need(channel_.wait(3 * want_.limit), "no event");
    say_event(event);
    if (event.kind != verbs::event_kind::established) std::exit(3);
  }

  void say_event(const verbs::connection_event& event) {
    json line{{"event", event.kind == verbs::event_kind::connect_request ? "request" : verbs::to_string(event.kind)},
              {"data", test_support::to_hex(event.private_data)},
              {"peer_ird", event.peer_ird},
              {"peer_ord", event.peer_ord},
              {"reason", event.reason_text},
              {"crc", event.crc},
              {"markers", event.markers},
              {"revision", event.mpa_revision}};
    if (event.kind == verbs::event_kind::established) {
      line["ird"] = qp_.ird();
      line["ord"] = qp_.ord();
    }
    say(line);
  }

  void run_steps() {
    for (const std::string& step : want_.steps) {
      run_step(step);
      say({{"step", step}, {"status", "success"}});
    }
  }

  void run_step(const std::string& step) {
    const auto colon = step.find(':');
    const std::string verb = step.substr(0, colon);
    std::vector<std::uint32_t> numbers;
    for (auto at = colon; at != std::string::npos; at = step.find(':', at + 1)) {
      numbers.push_back(static_cast<std::uint32_t>(std::strtoul(step.c_str() + at + 1, nullptr, 10)));
    }
    const auto n = [&](std::size_t i) { return i < numbers.size() ? numbers[i] : 0; };
    if (verb == "last") {
      post({.op = verbs::opcode::send}, source_region_.element(0, n(0)));
      next_done();
    } else if (verb == "send") {
      post({.op = verbs::opcode::send}, source_region_.element(0, n(0)));
      wait_done(step, 1);
    } else if (verb == "recv") {
      const arrival got = take_arrived();
      if (got.size != n(0) || !right(octets(got))) give_up("another Send than was expected", std::to_string(got.size));
      post_receive(got.slot);
    } else if (verb == "offer") {
      send_offer();
      wait_done(step, 1);
    } else if (verb == "take") {
      take_offer();
    } else if (verb == "write") {
      post({.op = verbs::opcode::rdma_write, .remote = peer_sink_}, source_region_.element(0, n(0)));
      wait_done(step, 1);
    } else if (verb == "solicited") {
      post({.op = verbs::opcode::send, .solicited = true}, source_region_.element(0, n(0)));
      wait_done(step, 1);
    } else if (verb == "invalidate") {
      post({.op = verbs::opcode::send_with_invalidate, .invalidate = peer_sink_.key}, source_region_.element(0, n(0)));
      wait_done(step, 1);
    } else if (verb == "bad") {
      verbs::remote_buffer nowhere = peer_sink_;
      nowhere.key.value ^= 1;
      post({.op = verbs::opcode::rdma_write, .remote = nowhere}, source_region_.element(0, n(0)));
      next_done();
    } else if (verb == "check") {
      if (!right(const_bytes(sink_).first(n(0)))) give_up("the sink does not hold what was written");
    } else if (verb == "reads") {
      for (std::uint32_t i = 0; i < n(0); ++i) {
        verbs::remote_buffer from = peer_source_;
        from.offset += std::uint64_t{i} * n(1);
        post({.op = verbs::opcode::rdma_read, .remote = from}, sink_region_.element(std::uint64_t{i} * n(1), n(1)));
      }
      wait_done(step, n(0));
      if (!right(const_bytes(sink_).first(std::size_t{n(0)} * n(1)))) give_up("what was read differs");
    } else if (verb == "stream" || verb == "pull") {
      until_error(step, verb == "pull");
    } else if (verb == "hold" || verb == "disconnect") {
      if (verb == "disconnect") need(qp_.disconnect(), "disconnect");
      const auto event = need(channel_.wait(want_.limit), "no event of the disconnection");
      say_event(event);
      if (event.kind != verbs::event_kind::disconnected) give_up("another event");
    } else if (verb == "abort") {
      qp_.abort();
    } else if (verb == "exit") {
      say({{"step", step}, {"status", "success"}});
      std::_Exit(0);
    } else {
      give_up("unknown step", step);
    }
  }

  void post(verbs::send_request request, const verbs::sge& element) {
    request.id = request_id;
    request.elements = {&element, 1};
    need(qp_.post_send(request), "post_send");
  }

  // The next completion of a request; receives are put aside.
  verbs::completion next_done() {
    for (;;) {
      const verbs::completion done = next();
      if (done.id >= receives) return done;
      if (done.status == verbs::status::success) {
        arrived_.push_back({done.id, done.length});
      } else {
        gone_ = true;
      }
    }
  }

  verbs::completion next() {
    const auto end = std::chrono::steady_clock::now() + want_.limit;
    verbs::completion done;
    while (cq_->poll({&done, 1}) == 0) {
      if (std::chrono::steady_clock::now() > end) give_up("no completion");
      cq_->arm();
      if (cq_->poll({&done, 1}) != 0) break;  // came before arm()
      pollfd waiting{.fd = cq_->descriptor(), .events = POLLIN, .revents = 0};
      ::poll(&waiting, 1, 100);
      cq_->acknowledge();
    }
    return done;
  }

  void wait_done(const std::string& step, std::uint32_t count) {
    for (; count > 0; --count) {
      const auto done = next_done();
      if (done.status == verbs::status::success) continue;
      say({{"step", step}, {"status", verbs::to_string(done.status)}});
      if (const auto event = channel_.wait(want_.limit)) say_event(*event);
      std::exit(4);
    }
  }

  arrival take_arrived() {
    while (arrived_.empty()) {
      if (gone_) give_up("the connection ended before a Send came");
      const auto done = next();
      if (done.id >= receives) continue;
      gone_ = done.status != verbs::status::success;
      if (!gone_) arrived_.push_back({done.id, done.length});
    }
    const arrival oldest = arrived_.front();
    arrived_.pop_front();
    return oldest;
  }

  [[nodiscard]] const_bytes octets(const arrival& a) const {
    return const_bytes(receive_).subspan(a.slot * receive_size, a.size);
  }

  // Where this side's source and sink are: two addresses, two keys, in network order.
  void send_offer() {
    std::array<std::byte, offer_size> message;
    const mutable_bytes out = message;
    store_be<std::uint64_t>(out.subspan<0, 8>(), source_region_.remote().offset);
    store_be<std::uint64_t>(out.subspan<8, 8>(), sink_region_.remote().offset);
    store_be<std::uint32_t>(out.subspan<16, 4>(), source_region_.key().value);
    store_be<std::uint32_t>(out.subspan<20, 4>(), sink_region_.key().value);
    post({.op = verbs::opcode::send, .inline_data = true}, {message.data(), offer_size, {}});
  }

  void take_offer() {
    const arrival got = take_arrived();
    if (got.size != offer_size) give_up("that was no offer");
    const const_bytes in = octets(got);
    peer_source_ = {.key = {load_be<std::uint32_t>(in.subspan<16, 4>())},
                    .offset = load_be<std::uint64_t>(in.subspan<0, 8>())};
    peer_sink_ = {.key = {load_be<std::uint32_t>(in.subspan<20, 4>())},
                  .offset = load_be<std::uint64_t>(in.subspan<8, 8>())};
    post_receive(got.slot);
  }

  // Four at a time, each as large as the buffer, until one fails.
  void until_error(const std::string& step, bool pull) {
    verbs::completion done;
    long count = 0;
    for (int outstanding = 0; done.status == verbs::status::success;) {
      for (; outstanding < 4; ++outstanding) {
        const verbs::sge element = (pull ? sink_region_ : source_region_).element();
        const verbs::send_request request{.id = request_id,
                                          .op = pull ? verbs::opcode::rdma_read : verbs::opcode::rdma_write,
                                          .elements = {&element, 1},
                                          .remote = pull ? peer_source_ : peer_sink_};
        if (const auto posted = qp_.post_send(request); !posted) {
          say({{"step", step}, {"status", "post: " + posted.error().message()}, {"count", count}});
          return;
        }
      }
      done = next_done();
      if (done.status != verbs::status::success) break;
      --outstanding;
      if (++count == 1) say({{"step", step}, {"status", "begun"}});
    }
    say({{"step", step}, {"status", verbs::to_string(done.status)}, {"count", count}});
  }

  const command_line& want_;
  verbs::context context_;
  verbs::protection_domain pd_;
  verbs::event_channel channel_;
  std::optional<verbs::completion_queue> cq_;
  std::vector<std::byte> source_ = std::vector<std::byte>(buffer_size);
  std::vector<std::byte> sink_ = std::vector<std::byte>(buffer_size);
  std::vector<std::byte> receive_ = std::vector<std::byte>(receives * receive_size);
  verbs::memory_region source_region_, sink_region_, receive_region_;
  verbs::remote_buffer peer_source_, peer_sink_;
  std::deque<arrival> arrived_;
  bool gone_ = false;
  verbs::queue_pair qp_;
};

command_line parse(const std::vector<std::string>& words) {
  if (words.size() < 3) give_up("usage");
  command_line want;
  want.listens = words[0] == "listen";
  want.where = {words[1], static_cast<std::uint16_t>(std::stoi(words[2]))};
  std::size_t i = 3;
  for (; i + 1 < words.size() && words[i].starts_with("--"); i += 2) {
    const std::string& option = words[i];
    const std::string& value = words[i + 1];
    if (option == "--data") {
      want.data = test_support::from_hex(value);
    } else if (option == "--ird") {
      want.options.ird = static_cast<std::uint16_t>(std::stoi(value));
    } else if (option == "--ord") {
      want.options.ord = static_cast<std::uint16_t>(std::stoi(value));
    } else if (option == "--answer") {
      want.answer = value;
    } else if (option == "--count") {
      want.count = std::stoi(value);
    } else if (option == "--limit") {
      want.limit = std::chrono::seconds(std::stoi(value));
    } else if (option == "--crc") {
      want.options.crc = value == "on";
    } else if (option == "--markers") {
      want.options.markers = value != "off";
      want.options.fall_back_without_markers = value == "prefer";
    } else if (option == "--p2p") {
      want.options.peer_to_peer = value == "on";
    } else if (option == "--revision") {
      want.options.mpa_revision = static_cast<std::uint8_t>(std::stoi(value));
    } else {
      give_up("unknown option", option);
    }
  }
  want.steps.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return want;
}

}  // namespace

int main(int argc, char** argv) {
  const command_line want = parse({argv + 1, argv + argc});
  const std::size_t before = descriptors();
  {
    probe one(want);
    if (want.listens) {
      one.listen_all();
    } else {
      for (int i = 0; i < want.count; ++i) {
        one.connect_once();
        if (want.count > 1) say({{"connection", i + 1}, {"descriptors", descriptors()}});
      }
    }
  }
  say({{"event", "end"}, {"descriptors_before", before}, {"descriptors_after", descriptors()}});
  return 0;
}
