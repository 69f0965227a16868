// Queue pairs: creation, states, attributes. Connections are the connection manager's (cm_connection.cpp): iWARP has no
// other way to make one.
#include <algorithm>
#include <utility>

#include "verbs/compat/cm.hpp"
#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

std::unordered_map<std::uint32_t, qp_handle*>& numbers() {
  static auto* const all = new std::unordered_map<std::uint32_t, qp_handle*>;
  return *all;
}

ibv_qp* refuse(int error) {
  errno = error;
  return nullptr;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* a) {
  if (context == nullptr || a == nullptr) return refuse(EINVAL);
  if ((a->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return refuse(EINVAL);
  constexpr std::uint32_t understood =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((a->comp_mask & ~understood) != 0) return refuse(EOPNOTSUPP);
  if ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && a->create_flags != 0) return refuse(EOPNOTSUPP);
  constexpr std::uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                                       IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV;
  const bool extended = (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (extended && (a->send_ops_flags & ~operations) != 0) return refuse(EOPNOTSUPP);
  return create_qp(a->pd, *a, extended);
}

/// A completion that found no room ended its connection. Told once for each queue.
void tell_overrun(ibv_cq* cq) {
  auto& c = cq_handle::of(cq);
  if (!c.native.overflowed() || std::exchange(c.overrun_told, true)) return;
  ibv_async_event event{};
  event.element.cq = cq;
  event.event_type = IBV_EVENT_CQ_ERR;
  open_device::of(cq->context).async.put(event);
}

}  // namespace

ibv_qp_init_attr_ex as_extended(const ibv_qp_init_attr& a) noexcept {
  ibv_qp_init_attr_ex ex{};
  ex.qp_context = a.qp_context;
  ex.send_cq = a.send_cq;
  ex.recv_cq = a.recv_cq;
  ex.srq = a.srq;
  ex.cap = a.cap;
  ex.qp_type = a.qp_type;
  ex.sq_sig_all = a.sq_sig_all;
  return ex;
}

qp_handle* qp_with(std::uint32_t number) {
  const auto found = numbers().find(number);
  return found == numbers().end() ? nullptr : found->second;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr_ex& a, bool extended) {
  if (pd == nullptr || a.send_cq == nullptr || a.recv_cq == nullptr) return refuse(EINVAL);
  if (a.qp_type != IBV_QPT_RC) {
    if (a.qp_type == IBV_QPT_UD)
      complain("this program asks for unreliable datagrams (IBV_QPT_UD), which iWARP does not have");
    return refuse(EOPNOTSUPP);
  }
  const auto& cap = a.cap;
  if (cap.max_send_wr > max_qp_requests || cap.max_recv_wr > max_qp_requests || cap.max_send_sge > max_elements ||
      cap.max_recv_sge > max_elements) {
    return refuse(EINVAL);
  }
  const auto elsewhere = [&](const ibv_context* other) {
    return other->device != pd->context->device;  // librdmacm's context of a device and the program's own may mix
  };
  if (elsewhere(a.send_cq->context) || elsewhere(a.recv_cq->context) ||
      (a.srq != nullptr && elsewhere(a.srq->context))) {
    return refuse(EINVAL);
  }
  stack& home = *open_device::of(pd->context).home;
  auto qp = std::make_unique<qp_handle>();
  const auto at_least_one = [](std::uint32_t n) { return std::max(n, 1U); };
  verbs::queue_pair_options options{
      .max_send_requests = at_least_one(a.cap.max_send_wr),
      .max_receive_requests = a.srq != nullptr ? 0 : a.cap.max_recv_wr,
      .max_send_sge = at_least_one(a.cap.max_send_sge),
      .max_receive_sge = at_least_one(a.cap.max_recv_sge),
      // More than asked for costs little, and programs count on some.
      .max_inline = std::max(a.cap.max_inline_data, 256U),
      .signal_all = a.sq_sig_all != 0,
  };
  std::optional<verbs::shared_receive_queue> shared;
  if (a.srq != nullptr) shared = srq_handle::of(a.srq).native;
  const std::lock_guard lock(home.mutex());
  options.user_data = qp->user_data = home.begin(*qp);
  auto native = verbs::queue_pair::create(pd_handle::of(pd).native, cq_handle::of(a.send_cq).native,
                                          cq_handle::of(a.recv_cq).native, home.events, options, shared);
  if (!native) {
    home.end(qp->user_data);
    return refuse(errno_of(native.error()));
  }
  qp->native = *std::move(native);
  qp->cap = {.max_send_wr = options.max_send_requests,
             .max_recv_wr = options.max_receive_requests,
             .max_send_sge = options.max_send_sge,
             .max_recv_sge = options.max_receive_sge,
             .max_inline_data = options.max_inline};
  a.cap = qp->cap;
  qp->signal_all = options.signal_all;
  ibv_qp& out = qp->qp_base;
  out.context = pd->context;
  out.qp_context = a.qp_context;
  out.pd = pd;
  out.send_cq = a.send_cq;
  out.recv_cq = a.recv_cq;
  out.srq = a.srq;
  out.handle = out.qp_num = qp->native.number();
  out.state = IBV_QPS_RESET;
  out.qp_type = IBV_QPT_RC;
  ::pthread_mutex_init(&out.mutex, nullptr);
  ::pthread_cond_init(&out.cond, nullptr);
  if (extended) set_extended(*qp);
  pd_handle::of(pd).users.fetch_add(1);
  cq_handle::of(a.send_cq).users.fetch_add(1);
  cq_handle::of(a.recv_cq).users.fetch_add(1);
  if (a.srq != nullptr) srq_handle::of(a.srq).users.fetch_add(1);
  numbers().emplace(out.qp_num, qp.get());
  return qp.release()->handle_of();
}

ibv_qp_state qp_handle::state_now() const {
  switch (native.state()) {
    case verbs::qp_state::idle:
      return asked == IBV_QPS_RESET ? IBV_QPS_RESET : IBV_QPS_INIT;
    case verbs::qp_state::connecting:
      return IBV_QPS_INIT;
    case verbs::qp_state::rts:
      return IBV_QPS_RTS;
    case verbs::qp_state::closing:
      return IBV_QPS_SQD;
    case verbs::qp_state::terminate:
    case verbs::qp_state::error:
      return IBV_QPS_ERR;
  }
  return IBV_QPS_ERR;
}

void qp_handle::on_event(const verbs::connection_event& event) {
  if (owner != nullptr) owner->on_connection(event);
  if (event.kind != verbs::event_kind::disconnected) return;
  // A native one is idle after a graceful end and may connect anew; here a connection that is over means ERR, where
  // what is posted comes back flushed.
  native.abort();
  qp_base.state = IBV_QPS_ERR;
  tell_overrun(qp_base.send_cq);
  tell_overrun(qp_base.recv_cq);
  if (qp_base.srq == nullptr) return;
  ibv_async_event last{};
  last.element.qp = &qp_base;
  last.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
  open_device::of(qp_base.context).async.put(last);
}

void set_queue_pair_operations(verbs_context& ex) { ex.create_qp_ex = create_qp_ex; }

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* a) {
  if (pd == nullptr || a == nullptr) return refuse(EINVAL);
  ibv_qp_init_attr_ex ex = as_extended(*a);
  ibv_qp* const qp = create_qp(pd, ex, false);
  if (qp != nullptr) a->cap = ex.cap;
  return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (qp == nullptr) return nullptr;
  auto& q = qp_handle::of(qp);
  return q.wr_start == nullptr ? nullptr : &q;
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (qp == nullptr) return EINVAL;
  auto& q = qp_handle::of(qp);
  open_device& where = open_device::of(qp->context);
  {
    const std::lock_guard lock(where.home->mutex());
    if (q.owner != nullptr) q.owner->forget_qp();
    where.home->end(q.user_data);
    numbers().erase(qp->qp_num);
  }
  q.native = {};  // flushes, and takes its completions out of the queues
  where.async.remove_if(
      [&](const ibv_async_event& e) {
        return (e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED || e.event_type == IBV_EVENT_QP_FATAL) &&
               e.element.qp == qp;
      },
      [](const ibv_async_event&) {});
  ::pthread_mutex_lock(&qp->mutex);
  while (qp->events_completed != q.events_taken) ::pthread_cond_wait(&qp->cond, &qp->mutex);
  ::pthread_mutex_unlock(&qp->mutex);
  ::pthread_cond_destroy(&qp->cond);
  ::pthread_mutex_destroy(&qp->mutex);
  pd_handle::of(qp->pd).users.fetch_sub(1);
  cq_handle::of(qp->send_cq).users.fetch_sub(1);
  cq_handle::of(qp->recv_cq).users.fetch_sub(1);
  if (qp->srq != nullptr) srq_handle::of(qp->srq).users.fetch_sub(1);
  delete &q;
  return 0;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* a, int mask) {
  if (qp == nullptr || a == nullptr) return EINVAL;
  auto& q = qp_handle::of(qp);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) q.access = a->qp_access_flags;
  if ((mask & IBV_QP_STATE) == 0) return 0;
  const auto native = q.native.state();
  switch (a->qp_state) {
    case IBV_QPS_RESET:
      if (native == verbs::qp_state::rts || native == verbs::qp_state::connecting) q.native.abort();
      if (!q.native.reset()) return EINVAL;
      break;
    case IBV_QPS_INIT:
      if (native == verbs::qp_state::error && !q.native.reset()) return EINVAL;
      if (native == verbs::qp_state::rts) return EINVAL;
      break;
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
      // The connection manager brings a queue pair there; saying it again is harmless.
      if (native != verbs::qp_state::rts) return EINVAL;
      break;
    case IBV_QPS_SQD:
      if (native != verbs::qp_state::rts || !q.native.disconnect()) return EINVAL;
      break;
    case IBV_QPS_ERR:
      q.native.abort();
      break;
    case IBV_QPS_SQE:
    case IBV_QPS_UNKNOWN:
    default:  // what programs pass need not be one of them
      return EINVAL;
  }
  q.asked = a->qp_state;
  qp->state = a->qp_state;
  return 0;
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* a, int, ibv_qp_init_attr* init) {
  if (qp == nullptr || a == nullptr || init == nullptr) return EINVAL;
  auto& q = qp_handle::of(qp);
  *a = {};
  *init = {};
  a->qp_state = a->cur_qp_state = qp->state = q.state_now();
  a->path_mtu = IBV_MTU_4096;
  a->qp_access_flags = q.access;
  a->cap = q.cap;
  a->max_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(q.native.ord(), 255));
  a->max_dest_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(q.native.ird(), 255));
  a->port_num = 1;
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->srq = qp->srq;
  init->cap = q.cap;
  init->qp_type = IBV_QPT_RC;
  init->sq_sig_all = q.signal_all ? 1 : 0;
  return 0;
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

}  // extern "C"
