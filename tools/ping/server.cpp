#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/session.hpp"
#include "tools/common/stop.hpp"
#include "tools/ping/commands.hpp"
#include "tools/ping/protocol.hpp"

namespace iwarp::tools::ping {
namespace {

constexpr auto spin = std::chrono::microseconds(200);

class client_server {
 public:
  client_server(const verbs::context& where, bool verbose)
      : session_(where, {.max_send_requests = 16, .max_receive_requests = 2, .max_inline = message_size}),
        incoming_(session_, 2, message_size),
        verbose_(verbose) {}

  void run(const verbs::connection_event& request) {
    incoming_.post_all();
    session_.accept(request);
    for (;;) answer_one();
  }

 private:
  void answer_one() {
    const advert source = next_advert();
    provide(source.size);
    const verbs::sge element = region_.element(0, source.size);
    const verbs::send_request read{.op = verbs::opcode::rdma_read, .elements = {&element, 1}, .remote = source.buffer};
    session_.post({&read, 1});
    for (;;) {
      const auto done = session_.next(no_limit, spin);
      if (done.kind == verbs::completion_kind::rdma_read) break;
      if (done.kind == verbs::completion_kind::receive)
        throw failure("sent a message before the Read of its data ended");
    }
    if (verbose_) {
      fmt::print("server ping data: {}\n", text_of(const_bytes(data_).first(source.size)));
      std::fflush(stdout);
    }
    session_.send(empty_message);

    const advert sink = next_advert();
    const verbs::sge echo = region_.element(0, std::min(source.size, sink.size));
    const verbs::sge done{.address = const_cast<std::byte*>(empty_message.data()), .length = message_size, .key = {}};
    // A Send is delivered after the Write before it was placed (RFC 5040 s5.5), so nothing is waited for in between.
    const std::array requests{
        verbs::send_request{
            .op = verbs::opcode::rdma_write, .signaled = false, .elements = {&echo, 1}, .remote = sink.buffer},
        verbs::send_request{.id = session::send_id, .inline_data = true, .elements = {&done, 1}}};
    session_.post(requests);
  }

  advert next_advert() {
    for (;;) {
      const auto done = session_.next(no_limit, spin);
      if (done.kind != verbs::completion_kind::receive) continue;
      if (done.length != message_size)
        throw failure(fmt::format("sent {} octets where rping sends {}", done.length, message_size));
      const auto message = advert::parse(incoming_.octets(done).first<message_size>());
      incoming_.post(done.id);
      return message;
    }
  }

  void provide(std::uint32_t size) {
    if (size > max_size) throw failure(fmt::format("offers {} octets, at most {} are taken", size, max_size));
    if (size <= data_.size()) return;
    region_ = {};
    data_.resize(size);
    region_ = require(verbs::memory_region::create(session_.pd(), data_, verbs::access::local_write),
                      "cannot register memory");
  }

  static constexpr std::array<std::byte, message_size> empty_message = {};

  session session_;
  receive_buffers incoming_;
  bool verbose_;
  std::vector<std::byte> data_;
  verbs::memory_region region_;
};

}  // namespace

int run(serve_command command) {
  command.flags.apply(command.options.listen);
  command.options.listen.ird = 1;  // as rping has it
  command.options.listen.ord = 1;
  return serve(command.options, [verbose = command.verbose](const auto& where, const auto& request) {
    client_server(where, verbose).run(request);
  });
}

}  // namespace iwarp::tools::ping
