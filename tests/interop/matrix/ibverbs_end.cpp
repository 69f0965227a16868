// The end over libibverbs and librdmacm: a siw device in the siw host. Waits for events, never polls in a loop: that
// host has one processor and no preemption.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "tests/interop/matrix/end.hpp"
#include "tests/interop/matrix/layout.hpp"
#include "tests/interop/matrix/region_memory.hpp"

namespace iwarp::interop {
namespace {

using steady = std::chrono::steady_clock;
constexpr milliseconds resolve_limit{3000};
// A wake-up that siw owes us (protocol.md 6.5) costs no more than this.
constexpr std::int64_t longest_sleep = 50;

[[noreturn]] void fail_errno(const char* what) { throw failure(std::string(what) + ": " + std::strerror(errno)); }
void require(int code, const char* what) {
  if (code != 0) fail_errno(what);
}
template <class T>
T* require(T* object, const char* what) {
  if (object == nullptr) fail_errno(what);
  return object;
}

constexpr std::array<std::pair<ibv_wc_status, const char*>, 9> statuses{
    {{IBV_WC_SUCCESS, "success"},
     {IBV_WC_WR_FLUSH_ERR, "flushed"},
     {IBV_WC_LOC_LEN_ERR, "local_length"},
     {IBV_WC_LOC_PROT_ERR, "local_protection"},
     {IBV_WC_LOC_QP_OP_ERR, "local_qp_operation"},
     {IBV_WC_REM_ACCESS_ERR, "remote_access"},
     {IBV_WC_REM_OP_ERR, "remote_operation"},
     {IBV_WC_REM_INV_REQ_ERR, "remote_invalid_request"},
     {IBV_WC_BAD_RESP_ERR, "bad_response"}}};

std::string status_text(ibv_wc_status status) {
  for (const auto& [value, text] : statuses) {
    if (value == status) return text;
  }
  return ibv_wc_status_str(status);
}

constexpr std::array<std::pair<ibv_wc_opcode, const char*>, 5> kinds{{{IBV_WC_SEND, "send"},
                                                                      {IBV_WC_RDMA_WRITE, "rdma write"},
                                                                      {IBV_WC_RDMA_READ, "rdma read"},
                                                                      {IBV_WC_LOCAL_INV, "local invalidate"},
                                                                      {IBV_WC_RECV, "receive"}}};

std::string kind_text(ibv_wc_opcode opcode) {
  for (const auto& [value, text] : kinds) {
    if (value == opcode) return text;
  }
  return "kind " + std::to_string(opcode);
}

constexpr std::array<std::pair<rdma_cm_event_type, const char*>, 6> event_kinds{
    {{RDMA_CM_EVENT_CONNECT_REQUEST, "connect_request"},
     {RDMA_CM_EVENT_ESTABLISHED, "established"},
     {RDMA_CM_EVENT_REJECTED, "rejected"},
     {RDMA_CM_EVENT_UNREACHABLE, "unreachable"},
     {RDMA_CM_EVENT_CONNECT_ERROR, "connect_error"},
     {RDMA_CM_EVENT_DISCONNECTED, "disconnected"}}};

std::string event_text(rdma_cm_event_type kind) {
  for (const auto& [value, text] : event_kinds) {
    if (value == kind) return text;
  }
  return rdma_event_str(kind);
}

/// An IPv4 or IPv6 address and a port, as the C library wants them.
struct socket_address {
  sockaddr_storage storage{};
  socket_address(const std::string& address, std::uint16_t port) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(port);
    } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port);
    } else {
      throw failure("no address: " + address);
    }
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

struct registered {
  region_memory memory;
  ibv_mr* region;
};

class ibverbs_end final : public end {
 public:
  ibverbs_end() {
    int count = 0;
    ibv_context** devices = rdma_get_devices(&count);
    if (devices == nullptr || count == 0) throw failure("no RDMA device");
    context_ = devices[0];
    rdma_free_devices(devices);
    require(::fcntl(context_->async_fd, F_SETFL, O_NONBLOCK), "fcntl");
    domain_ = require(ibv_alloc_pd(context_), "ibv_alloc_pd");
    strangers_ = require(ibv_alloc_pd(context_), "ibv_alloc_pd");
    events_ = require(rdma_create_event_channel(), "rdma_create_event_channel");
  }
  ~ibverbs_end() override { close(); }

  interop::about describe() override { return {.provider = "siw", .inline_octets = 64, .sges = 6}; }

  region add_region(std::uint64_t length, const std::string& rights, bool stranger) override {
    int allowed = IBV_ACCESS_LOCAL_WRITE;
    if (rights.find('w') != std::string::npos) allowed |= IBV_ACCESS_REMOTE_WRITE;
    if (rights.find('r') != std::string::npos) allowed |= IBV_ACCESS_REMOTE_READ;
    region_memory memory(length);
    ibv_mr* made =
        require(ibv_reg_mr(stranger ? strangers_ : domain_, memory.octets().data(), length, allowed), "ibv_reg_mr");
    const std::uint32_t index = next_region_++;
    regions_.emplace(index, registered{std::move(memory), made});
    return {index, made->rkey, reinterpret_cast<std::uint64_t>(made->addr), length};
  }
  void remove_region(std::uint32_t index) override {
    require(ibv_dereg_mr(regions_.at(index).region), "ibv_dereg_mr");
    regions_.erase(index);
  }
  bool region_valid(std::uint32_t) override { return true; }
  mutable_bytes memory(std::uint32_t index) override { return regions_.at(index).memory.octets(); }

  std::uint16_t listen(const std::string& address, const connection_wishes&) override {
    if (listener_ != nullptr) require(rdma_destroy_id(std::exchange(listener_, nullptr)), "rdma_destroy_id");
    require(rdma_create_id(events_, &listener_, nullptr, RDMA_PS_TCP), "rdma_create_id");
    require(rdma_bind_addr(listener_, socket_address(address, 0).get()), "rdma_bind_addr");
    require(rdma_listen(listener_, 8), "rdma_listen");
    return ntohs(rdma_get_src_port(listener_));
  }

  void open(const queue_options& queues, const std::string& address, std::uint16_t port) override {
    drop_connection();
    require(rdma_create_id(events_, &id_, nullptr, RDMA_PS_TCP), "rdma_create_id");
    require(rdma_resolve_addr(id_, nullptr, socket_address(address, port).get(), resolve_limit.count()),
            "rdma_resolve_addr");
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    require(rdma_resolve_route(id_, resolve_limit.count()), "rdma_resolve_route");
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queue_pair(queues);
  }
  void connect(const connection_wishes& wishes) override {
    rdma_conn_param how = parameters(wishes);
    require(rdma_connect(id_, &how), "rdma_connect");
  }
  void open_request(const queue_options& queues) override {
    drop_connection();
    id_ = std::exchange(request_, nullptr);
    if (id_ == nullptr) throw failure("no connection request");
    make_queue_pair(queues);
  }
  void accept(const connection_wishes& wishes) override {
    rdma_conn_param how = parameters(wishes);
    require(rdma_accept(id_, &how), "rdma_accept");
  }
  void reject(const std::string& private_data) override {
    rdma_cm_id* request = std::exchange(request_, nullptr);
    if (request == nullptr) throw failure("no connection request");
    require(rdma_reject(request, private_data.data(), static_cast<std::uint8_t>(private_data.size())), "rdma_reject");
    require(rdma_destroy_id(request), "rdma_destroy_id");
  }

  event wait_event(milliseconds limit) override {
    rdma_cm_event* got = next_event(limit);
    if (got == nullptr) return {};
    event e{.kind = event_text(got->event)};
    if (got->status != 0) e.reason = std::to_string(got->status);
    const rdma_conn_param& how = got->param.conn;
    if (how.private_data != nullptr && got->event != RDMA_CM_EVENT_DISCONNECTED) {
      e.private_data = to_hex({static_cast<const char*>(how.private_data), how.private_data_len});
    }
    e.ird = how.responder_resources;
    e.ord = how.initiator_depth;
    if (got->event == RDMA_CM_EVENT_CONNECT_REQUEST) request_ = got->id;
    rdma_ack_cm_event(got);
    return e;
  }

  std::vector<completion> wait_completions(std::size_t count, milliseconds limit) override {
    std::vector<completion> all;
    const auto until = steady::now() + limit;
    while (true) {
      if (take(all)) continue;
      if (all.size() >= count) return all;
      require(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
      if (take(all)) continue;
      const auto left = std::chrono::duration_cast<milliseconds>(until - steady::now()).count();
      if (left <= 0) return all;
      pollfd wait{completions_->fd, POLLIN, 0};
      if (::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, longest_sleep))) == 1) {
        ibv_cq* which = nullptr;
        void* context = nullptr;
        require(ibv_get_cq_event(completions_, &which, &context), "ibv_get_cq_event");
        ibv_ack_cq_events(which, 1);
      }
    }
  }
  std::vector<std::string> asynchronous_events() override {
    std::vector<std::string> all;
    ibv_async_event e{};
    while (ibv_get_async_event(context_, &e) == 0) {
      all.emplace_back(ibv_event_type_str(e.event_type));
      ibv_ack_async_event(&e);
    }
    return all;
  }

  std::string post_send(const work& what) override {
    std::vector<std::vector<ibv_sge>> elements = elements_of(what);
    std::vector<ibv_send_wr> requests(what.local.count);
    for (std::uint32_t i = 0; i < what.local.count; ++i) {
      ibv_send_wr& r = requests[i];
      r.wr_id = what.first_id + i;
      r.next = i + 1 < what.local.count ? &requests[i + 1] : nullptr;
      r.sg_list = elements[i].data();
      r.num_sge = static_cast<int>(elements[i].size());
      r.send_flags = IBV_SEND_SIGNALED;
      if (what.solicited) r.send_flags |= IBV_SEND_SOLICITED;
      if (what.fence) r.send_flags |= IBV_SEND_FENCE;
      if (what.inline_data) r.send_flags |= IBV_SEND_INLINE;
      switch (what.op) {
        case operation::send:
          r.opcode = IBV_WR_SEND;
          break;
        case operation::send_invalidate:
          r.opcode = IBV_WR_SEND_WITH_INV;
          r.invalidate_rkey = what.invalidate;
          break;
        case operation::local_invalidate:
          r.opcode = IBV_WR_LOCAL_INV;
          r.invalidate_rkey = what.invalidate;
          break;
        case operation::write:
        case operation::read:
          r.opcode = what.op == operation::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
          r.wr.rdma.rkey = what.remote_key;
          r.wr.rdma.remote_addr = what.remote_at + i * what.remote_stride;
          break;
      }
    }
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(qp(), requests.data(), &bad);
    return code == 0 ? "" : std::strerror(code < 0 ? -code : code);
  }
  std::string post_receive(const work& what) override {
    std::vector<std::vector<ibv_sge>> elements = elements_of(what);
    std::vector<ibv_recv_wr> requests(what.local.count);
    for (std::uint32_t i = 0; i < what.local.count; ++i) {
      requests[i].wr_id = what.first_id + i;
      requests[i].next = i + 1 < what.local.count ? &requests[i + 1] : nullptr;
      requests[i].sg_list = elements[i].data();
      requests[i].num_sge = static_cast<int>(elements[i].size());
    }
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_recv(qp(), requests.data(), &bad);
    return code == 0 ? "" : std::strerror(code < 0 ? -code : code);
  }

  void disconnect() override { require(rdma_disconnect(id_), "rdma_disconnect"); }
  void abort() override {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    if (const int code = ibv_modify_qp(qp(), &attributes, IBV_QP_STATE); code != 0) {
      errno = code;
      fail_errno("ibv_modify_qp");
    }
  }
  void close() override {
    drop_connection();
    if (request_ != nullptr) rdma_destroy_id(std::exchange(request_, nullptr));
    if (listener_ != nullptr) rdma_destroy_id(std::exchange(listener_, nullptr));
    asynchronous_events();
  }

 private:
  static rdma_conn_param parameters(const connection_wishes& wishes) {
    rdma_conn_param how{};
    how.private_data = wishes.private_data.empty() ? nullptr : wishes.private_data.data();
    how.private_data_len = static_cast<std::uint8_t>(wishes.private_data.size());
    how.responder_resources = static_cast<std::uint8_t>(wishes.ird);
    how.initiator_depth = static_cast<std::uint8_t>(wishes.ord);
    return how;
  }

  ibv_qp* qp() {
    if (id_ == nullptr || id_->qp == nullptr) throw failure("no queue pair");
    return id_->qp;
  }

  void make_queue_pair(const queue_options& queues) {
    completions_ = require(ibv_create_comp_channel(context_), "ibv_create_comp_channel");
    cq_ = require(ibv_create_cq(context_, static_cast<int>(queues.sends + queues.receives), nullptr, completions_, 0),
                  "ibv_create_cq");
    ibv_qp_init_attr how{};
    how.send_cq = how.recv_cq = cq_;
    how.qp_type = IBV_QPT_RC;
    how.cap = {queues.sends, queues.receives, queues.sges, queues.sges, queues.inline_octets};
    require(rdma_create_qp(id_, domain_, &how), "rdma_create_qp");
  }
  void drop_connection() {
    if (id_ != nullptr) {
      if (id_->qp != nullptr) {
        asynchronous_events();  // destroying a queue pair waits until its events are acknowledged
        rdma_destroy_qp(id_);
      }
      rdma_destroy_id(std::exchange(id_, nullptr));
    }
    if (cq_ != nullptr) require(ibv_destroy_cq(std::exchange(cq_, nullptr)), "ibv_destroy_cq");
    if (completions_ != nullptr) ibv_destroy_comp_channel(std::exchange(completions_, nullptr));
  }

  rdma_cm_event* next_event(milliseconds limit) {
    pollfd wait{events_->fd, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(limit.count())) != 1) return nullptr;
    rdma_cm_event* got = nullptr;
    require(rdma_get_cm_event(events_, &got), "rdma_get_cm_event");
    return got;
  }
  void expect(rdma_cm_event_type kind) {
    rdma_cm_event* got = next_event(resolve_limit);
    if (got == nullptr) throw failure(std::string("no event ") + rdma_event_str(kind));
    const auto found = got->event;
    rdma_ack_cm_event(got);
    if (found != kind) throw failure(std::string(rdma_event_str(found)) + " instead of " + rdma_event_str(kind));
  }

  bool take(std::vector<completion>& all) {
    std::array<ibv_wc, 32> some{};
    const int n = ibv_poll_cq(cq_, some.size(), some.data());
    if (n < 0) throw failure("ibv_poll_cq fails");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = some[static_cast<std::size_t>(i)];
      completion done{.id = wc.wr_id, .status = status_text(wc.status)};
      if (wc.status == IBV_WC_SUCCESS) {
        done.kind = kind_text(wc.opcode);
        done.length = wc.byte_len;
      }
      all.push_back(done);
    }
    return n > 0;
  }

  std::vector<std::vector<ibv_sge>> elements_of(const work& what) {
    std::vector<std::vector<ibv_sge>> all(what.local.count);
    if (what.local.pieces == 0) return all;
    const registered& r = regions_.at(what.local.region);
    const std::uint32_t key = what.local.key != 0 ? what.local.key : r.region->lkey;
    for (std::uint32_t i = 0; i < what.local.count; ++i) {
      for (const piece& p : pieces_of(what.local, i)) {
        all[i].push_back({reinterpret_cast<std::uint64_t>(r.memory.octets().data() + p.at), p.length, key});
      }
    }
    return all;
  }

  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_pd* strangers_ = nullptr;
  rdma_event_channel* events_ = nullptr;
  std::map<std::uint32_t, registered> regions_;
  std::uint32_t next_region_ = 1;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* request_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

}  // namespace

std::unique_ptr<end> make_end() { return std::make_unique<ibverbs_end>(); }

}  // namespace iwarp::interop
