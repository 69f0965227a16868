// Internal to the drop-in.
// What stands behind the pointers that programs of rdma-core hold. Each begins with the public structure, whose layout
// the inline functions of <infiniband/verbs.h> count on. Threading: as the native objects in them.  Time: none.  I/O:
// none.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs/compat/pollable_queue.hpp"
#include "verbs/compat/stack.hpp"

namespace iwarp::compat {

struct cm_id;

// What devices offer, and no more is given.
inline constexpr std::uint32_t max_qp_requests = 65536;
inline constexpr std::uint32_t max_elements = 32;
inline constexpr std::uint32_t max_cqe = verbs::max_queue_depth;

struct device : ibv_device {
  local_address address;
};

/// ibv_open_device() and librdmacm's own.
struct open_device {
  verbs_context ex{};  // its last member is what programs see
  device* where = nullptr;
  stack* home = nullptr;
  pollable_queue<ibv_async_event> async;

  [[nodiscard]] ibv_context* handle() noexcept { return &ex.context; }
  static open_device& of(ibv_context* context) noexcept {
    return *reinterpret_cast<open_device*>(reinterpret_cast<char*>(context) - offsetof(verbs_context, context));
  }
};

struct pd_handle : ibv_pd {
  explicit pd_handle(const verbs::context& where) : ibv_pd{}, native(verbs::protection_domain::create(where)) {}
  verbs::protection_domain native;
  std::atomic<int> users{0};

  static pd_handle& of(ibv_pd* pd) noexcept { return *static_cast<pd_handle*>(pd); }
};

struct mr_handle : ibv_mr {
  mr_handle() : ibv_mr{} {}
  verbs::memory_region native;
  unsigned access = 0;
};

struct channel_handle : ibv_comp_channel {
  channel_handle() : ibv_comp_channel{} {}
  std::mutex mutex;  // of refcnt
};

/// A completion queue, also under its extended interface.
struct cq_handle : ibv_cq_ex {
  explicit cq_handle(verbs::completion_queue q) : ibv_cq_ex{}, native(std::move(q)) {}
  verbs::completion_queue native;
  std::atomic<int> users{0};
  std::uint32_t events_taken = 0;        // under `mutex`
  std::uint32_t async_events_taken = 0;  // under `mutex`
  bool overrun_told = false;             // under the stack's mutex
  verbs::completion current{};           // what next_poll() found

  static cq_handle& of(ibv_cq* cq) noexcept { return *static_cast<cq_handle*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
  [[nodiscard]] ibv_cq* handle_of() noexcept { return ibv_cq_ex_to_cq(this); }
};

struct srq_handle final : ibv_srq, event_target {
  srq_handle() : ibv_srq{} {}
  void on_event(const verbs::connection_event& event) override;
  std::optional<verbs::shared_receive_queue> native;
  std::uint64_t user_data = 0;
  std::uint32_t max_requests = 0, max_sge = 0, limit = 0;
  std::atomic<int> users{0};
  std::uint32_t events_taken = 0;  // under `mutex`

  static srq_handle& of(ibv_srq* srq) noexcept { return *static_cast<srq_handle*>(srq); }
};

struct qp_handle final : ibv_qp_ex, event_target {
  qp_handle() : ibv_qp_ex{} {}
  void on_event(const verbs::connection_event& event) override;
  verbs::queue_pair native;
  std::uint64_t user_data = 0;
  ibv_qp_cap cap{};
  bool signal_all = false;
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  cm_id* owner = nullptr;              // under the stack's mutex: the id whose connection it carries
  ibv_qp_state asked = IBV_QPS_RESET;  // the last state that the program asked for
  std::uint32_t events_taken = 0;      // under `mutex`

  // ibv_wr_start() to ibv_wr_complete().
  struct batch {
    std::vector<verbs::send_request> requests;
    std::vector<verbs::sge> elements;           // of all requests, in order
    std::vector<std::size_t> counts;            // elements of each request
    std::deque<std::vector<std::byte>> copies;  // of inline data
    int error = 0;
  };
  batch building;
  std::mutex building_mutex;

  static qp_handle& of(ibv_qp* qp) noexcept { return *static_cast<qp_handle*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
  [[nodiscard]] ibv_qp* handle_of() noexcept { return &qp_base; }
  [[nodiscard]] ibv_qp_state state_now() const;
};

/// Errors of posting are few: the queue is full, the state is wrong, or the request cannot be.
[[nodiscard]] int post_errno(const std::error_code& error) noexcept;

/// Programs pass null for what they failed to create.
template <class Handle>
[[nodiscard]] bool missing(const Handle* handle) noexcept {
  if (handle != nullptr) return false;
  errno = EINVAL;
  return true;
}

/// Device list and default protection domains, shared with the connection manager.
[[nodiscard]] device* device_with(const in6_addr& gid);
/// Opens it once for all ids. Null with errno.
[[nodiscard]] ibv_context* shared_context(device& where);
[[nodiscard]] ibv_pd* shared_pd(device& where);
/// Every device, in order.
[[nodiscard]] const std::vector<device*>& devices();

[[nodiscard]] ibv_wc_status status_of(verbs::status s) noexcept;
[[nodiscard]] ibv_wc_opcode opcode_of(verbs::completion_kind kind) noexcept;

/// What verbs_context and ibv_context_ops point to.
void set_operations(verbs_context& ex);
void set_completion_operations(verbs_context& ex);
void set_posting_operations(verbs_context& ex);
void set_queue_pair_operations(verbs_context& ex);
void set_shared_receive_operations(verbs_context& ex);
void set_refusing_operations(verbs_context& ex);
void set_extended(qp_handle& qp);
/// The same, as the extended calls take it.
[[nodiscard]] ibv_qp_init_attr_ex as_extended(const ibv_qp_init_attr& a) noexcept;
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr_ex& attributes, bool extended);
/// The queue pair with this number, or null. Under the stack's mutex.
[[nodiscard]] qp_handle* qp_with(std::uint32_t number);

}  // namespace iwarp::compat
