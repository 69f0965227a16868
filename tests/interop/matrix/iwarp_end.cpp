// The end over this project's verbs.
#include <poll.h>

#include <array>
#include <map>
#include <optional>

#include "tests/interop/matrix/end.hpp"
#include "tests/interop/matrix/layout.hpp"
#include "tests/interop/matrix/region_memory.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::interop {
namespace {

using steady = std::chrono::steady_clock;

template <class T>
T require(result<T> value, const char* what) {
  if (!value) throw failure(std::string(what) + ": " + value.error().message());
  if constexpr (!std::is_void_v<T>) return *std::move(value);
}

std::string to_text(const rdmap::term_code& code) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%u/%u/%02X", code.layer, code.type, code.code);
  return text.data();
}

std::string to_text(verbs::status s) {
  switch (s) {
    case verbs::status::success:
      return "success";
    case verbs::status::flushed:
      return "flushed";
    case verbs::status::local_length:
      return "local_length";
    case verbs::status::local_protection:
      return "local_protection";
    case verbs::status::local_qp_operation:
      return "local_qp_operation";
    case verbs::status::remote_access:
      return "remote_access";
    case verbs::status::remote_operation:
      return "remote_operation";
    case verbs::status::remote_invalid_request:
      return "remote_invalid_request";
    case verbs::status::bad_response:
      return "bad_response";
  }
  return "?";
}

std::string to_text(verbs::event_kind kind) {
  switch (kind) {
    case verbs::event_kind::connect_request:
      return "connect_request";
    case verbs::event_kind::established:
      return "established";
    case verbs::event_kind::rejected:
      return "rejected";
    case verbs::event_kind::unreachable:
      return "unreachable";
    case verbs::event_kind::connect_error:
      return "connect_error";
    case verbs::event_kind::disconnected:
      return "disconnected";
    case verbs::event_kind::receive_limit:
      return "receive_limit";
  }
  return "?";
}

const_bytes octets_of(const std::string& text) { return as_const_bytes(text.data(), text.size()); }

struct registered {
  region_memory memory;
  verbs::memory_region region;  // goes first
};

class iwarp_end final : public end {
 public:
  iwarp_end()
      : context_(require(verbs::context::create(), "context")),
        domain_(verbs::protection_domain::create(context_)),
        strangers_(verbs::protection_domain::create(context_)),
        events_(require(verbs::event_channel::create(context_), "event channel")) {}

  interop::about describe() override { return {.provider = "iwarp", .inline_octets = verbs::max_inline, .sges = 6}; }

  region add_region(std::uint64_t length, const std::string& rights, bool stranger) override {
    auto allowed = verbs::access::local_write;
    if (rights.find('w') != std::string::npos) allowed = allowed | verbs::access::remote_write;
    if (rights.find('r') != std::string::npos) allowed = allowed | verbs::access::remote_read;
    region_memory memory(length);
    auto made = require(verbs::memory_region::create(stranger ? strangers_ : domain_, memory.octets(), allowed),
                        "memory region");
    const std::uint32_t index = next_region_++;
    const registered& r = regions_.emplace(index, registered{std::move(memory), std::move(made)}).first->second;
    return {index, r.region.key().value, r.region.remote().offset, length};
  }
  void remove_region(std::uint32_t index) override { regions_.erase(index); }
  bool region_valid(std::uint32_t index) override { return regions_.at(index).region.valid(); }
  mutable_bytes memory(std::uint32_t index) override { return regions_.at(index).memory.octets(); }

  std::uint16_t listen(const std::string& address, const connection_wishes& wishes) override {
    verbs::listen_options options;
    apply(wishes, options);
    listener_ = {};
    listener_ = require(verbs::listener::create(events_, endpoint_of(address, 0), options), "listen");
    return listener_.local().port();
  }

  void open(const queue_options& queues, const std::string& address, std::uint16_t port) override {
    make_queue_pair(queues);
    peer_ = endpoint_of(address, port);
  }
  void connect(const connection_wishes& wishes) override {
    verbs::connect_options options;
    apply(wishes, options);
    options.private_data = octets_of(wishes.private_data);
    options.mpa_revision = static_cast<std::uint8_t>(wishes.revision);
    require(qp_.connect(peer_, options), "connect");
  }
  void open_request(const queue_options& queues) override { make_queue_pair(queues); }
  void accept(const connection_wishes& wishes) override {
    const auto request = std::exchange(request_, {});
    require(qp_.accept(request, {.private_data = octets_of(wishes.private_data), .ird = wishes.ird, .ord = wishes.ord}),
            "accept");
  }
  void reject(const std::string& private_data) override {
    const auto request = std::exchange(request_, {});
    require(verbs::reject(request, octets_of(private_data)), "reject");
  }

  event wait_event(milliseconds limit) override {
    auto got = events_.wait(limit);
    if (!got) return {};
    event e{.kind = to_text(got->kind), .reason = got->reason ? got->reason.message() : "", .text = got->reason_text};
    if (got->kind == verbs::event_kind::connect_request) request_ = got->request;
    e.private_data = to_hex({reinterpret_cast<const char*>(got->private_data.data()), got->private_data.size()});
    e.crc = got->crc;
    e.revision = got->mpa_revision;
    if (got->kind == verbs::event_kind::established) {
      e.ird = qp_.ird();
      e.ord = qp_.ord();
    } else if (got->kind == verbs::event_kind::connect_request) {
      e.ird = got->peer_ird;
      e.ord = got->peer_ord;
    }
    if (got->sent_terminate) e.sent = to_text(got->sent_terminate->code);
    if (got->received_terminate) {
      e.got = to_text(got->received_terminate->code);
      if (got->received_terminate->swapped_reading) e.got_swapped = to_text(*got->received_terminate->swapped_reading);
    }
    return e;
  }

  std::vector<completion> wait_completions(std::size_t count, milliseconds limit) override {
    std::vector<completion> all;
    const auto until = steady::now() + limit;
    while (true) {
      std::array<verbs::completion, 32> some;
      if (const std::size_t n = cq_->poll(some); n != 0) {
        for (std::size_t i = 0; i < n; ++i) all.push_back(take(some[i]));
        continue;
      }
      if (all.size() >= count) return all;
      cq_->arm();
      if (const std::size_t n = cq_->poll({some.data(), 1}); n != 0) {
        all.push_back(take(some[0]));
        continue;
      }
      const auto left = std::chrono::duration_cast<milliseconds>(until - steady::now()).count();
      pollfd wait{cq_->descriptor(), POLLIN, 0};
      if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return all;
      cq_->acknowledge();
    }
  }
  std::vector<std::string> asynchronous_events() override { return {}; }

  std::string post_send(const work& what) override {
    std::vector<std::vector<verbs::sge>> elements = elements_of(what);
    std::vector<verbs::send_request> requests;
    for (std::uint32_t i = 0; i < what.local.count; ++i) {
      verbs::send_request r{.id = what.first_id + i,
                            .solicited = what.solicited,
                            .fence = what.fence,
                            .inline_data = what.inline_data,
                            .elements = elements[i],
                            .remote = {{what.remote_key}, what.remote_at + i * what.remote_stride},
                            .invalidate = {what.invalidate}};
      switch (what.op) {
        case operation::send:
          r.op = verbs::opcode::send;
          break;
        case operation::send_invalidate:
          r.op = verbs::opcode::send_with_invalidate;
          break;
        case operation::write:
          r.op = verbs::opcode::rdma_write;
          break;
        case operation::read:
          r.op = verbs::opcode::rdma_read;
          break;
        case operation::local_invalidate:
          r.op = verbs::opcode::local_invalidate;
          break;
      }
      requests.push_back(r);
    }
    std::size_t posted = 0;
    const auto done = qp_.post_send(requests, posted);
    return done ? "" : done.error().message();
  }
  std::string post_receive(const work& what) override {
    std::vector<std::vector<verbs::sge>> elements = elements_of(what);
    std::vector<verbs::receive_request> requests;
    for (std::uint32_t i = 0; i < what.local.count; ++i) requests.push_back({what.first_id + i, elements[i]});
    std::size_t posted = 0;
    const auto done = qp_.post_receive(requests, posted);
    return done ? "" : done.error().message();
  }

  void disconnect() override { require(qp_.disconnect(), "disconnect"); }
  void abort() override { qp_.abort(); }
  void close() override {
    qp_ = {};
    request_ = {};
    listener_ = {};
    while (events_.poll()) {
    }
  }

 private:
  static verbs::endpoint endpoint_of(const std::string& address, std::uint16_t port) {
    return {boost::asio::ip::make_address(address), port};
  }
  static void apply(const connection_wishes& wishes, verbs::connection_options& options) {
    options.crc = wishes.crc;
    options.markers = wishes.markers;
    options.ird = wishes.ird;
    options.ord = wishes.ord;
    if (wishes.terminate_without_receive) options.shortage = verbs::no_receive::terminate;
  }
  static completion take(const verbs::completion& c) {
    completion done{.id = c.id, .status = to_text(c.status)};
    if (c.status != verbs::status::success) return done;
    done.kind = verbs::to_string(c.kind);
    done.length = c.length;
    done.solicited = c.solicited;
    if (c.with_invalidate) done.invalidated = c.invalidated.value;
    return done;
  }

  void make_queue_pair(const queue_options& queues) {
    const std::uint32_t depth = queues.sends + queues.receives;
    if (!cq_ || cq_->depth() < depth) cq_ = require(verbs::completion_queue::create(context_, depth), "CQ");
    qp_ = {};
    qp_ = require(verbs::queue_pair::create(domain_, *cq_, *cq_, events_,
                                            {.max_send_requests = queues.sends,
                                             .max_receive_requests = queues.receives,
                                             .max_send_sge = queues.sges,
                                             .max_receive_sge = queues.sges,
                                             .max_inline = queues.inline_octets}),
                  "queue pair");
  }

  std::vector<std::vector<verbs::sge>> elements_of(const work& what) {
    std::vector<std::vector<verbs::sge>> all(what.local.count);
    if (what.local.pieces == 0) return all;
    const registered& r = regions_.at(what.local.region);
    const stag key = what.local.key != 0 ? stag{what.local.key} : r.region.key();
    for (std::uint32_t i = 0; i < what.local.count; ++i) {
      for (const piece& p : pieces_of(what.local, i))
        all[i].push_back({r.memory.octets().data() + p.at, p.length, key});
    }
    return all;
  }

  verbs::context context_;
  verbs::protection_domain domain_;
  verbs::protection_domain strangers_;
  verbs::event_channel events_;
  std::map<std::uint32_t, registered> regions_;
  std::uint32_t next_region_ = 1;
  std::optional<verbs::completion_queue> cq_;
  verbs::listener listener_;
  verbs::queue_pair qp_;
  verbs::connection_request request_;
  verbs::endpoint peer_;
};

}  // namespace

std::unique_ptr<end> make_end() { return std::make_unique<iwarp_end>(); }

}  // namespace iwarp::interop
