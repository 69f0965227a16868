// Queue pairs on ids, endpoints, and rdma_getaddrinfo().
#include <netdb.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "verbs/compat/cm.hpp"

namespace iwarp::compat {
namespace {

/// A completion queue with a channel of its own, for programs that bring none.
bool make_queue(cm_id& id, ibv_comp_channel*& channel, ibv_cq*& cq, std::uint32_t depth) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return false;
  cq = ibv_create_cq(id.verbs, static_cast<int>(depth == 0 ? 1 : depth), &id, channel, 0);
  if (cq != nullptr) return true;
  ibv_destroy_comp_channel(channel);
  channel = nullptr;
  return false;
}
/// Also what a program put there itself: rsockets have one queue for both directions.
void drop_queues(cm_id& id) {
  ibv_cq* const receive = std::exchange(id.recv_cq, nullptr);
  ibv_cq* const send = std::exchange(id.send_cq, nullptr);
  if (receive != nullptr) ibv_destroy_cq(receive);
  if (send != nullptr && send != receive) ibv_destroy_cq(send);
  ibv_comp_channel* const of_receive = std::exchange(id.recv_cq_channel, nullptr);
  ibv_comp_channel* const of_send = std::exchange(id.send_cq_channel, nullptr);
  if (of_receive != nullptr) ibv_destroy_comp_channel(of_receive);
  if (of_send != nullptr && of_send != of_receive) ibv_destroy_comp_channel(of_send);
}

void free_info(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* const next = info->ai_next;
    std::free(info->ai_connect);
    std::free(info->ai_route);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info);
    info = next;
  }
}

bool copy_address(const sockaddr* from, socklen_t size, sockaddr*& into, socklen_t& into_size) {
  into = static_cast<sockaddr*>(std::malloc(size));
  if (into == nullptr) return false;
  std::memcpy(into, from, size);
  into_size = size;
  return true;
}

}  // namespace
}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* handle, ibv_qp_init_attr_ex* a) {
  if (handle == nullptr || a == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (id.qp != nullptr || id.verbs == nullptr) return fail_with(EINVAL);
  if ((a->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    a->comp_mask |= IBV_QP_INIT_ATTR_PD;
    a->pd = id.pd;
  }
  if (a->pd == nullptr || open_device::of(a->pd->context).where != open_device::of(id.verbs).where)
    return fail_with(EINVAL);
  if (a->recv_cq == nullptr && !make_queue(id, id.recv_cq_channel, id.recv_cq, a->cap.max_recv_wr)) return -1;
  if (a->recv_cq == nullptr) a->recv_cq = id.recv_cq;
  if (a->send_cq == nullptr && !make_queue(id, id.send_cq_channel, id.send_cq, a->cap.max_send_wr)) {
    drop_queues(id);
    return -1;
  }
  if (a->send_cq == nullptr) a->send_cq = id.send_cq;
  if (id.srq != nullptr && a->srq == nullptr) a->srq = id.srq;
  const bool extended = (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_qp* const qp = extended ? ibv_create_qp_ex(id.verbs, a) : create_qp(a->pd, *a, false);
  if (qp == nullptr) {
    const int error = errno;
    drop_queues(id);
    return fail_with(error);
  }
  qp_handle::of(qp).asked = qp->state = IBV_QPS_INIT;
  const std::lock_guard lock(id.home->mutex());
  id.qp = qp;
  id.pd = a->pd;
  return 0;
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* a) {
  if (a == nullptr) return fail_with(EINVAL);
  ibv_qp_init_attr_ex ex = as_extended(*a);
  if (pd != nullptr) {
    ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    ex.pd = pd;
  }
  if (rdma_create_qp_ex(id, &ex) != 0) return -1;
  a->cap = ex.cap;
  a->send_cq = ex.send_cq;
  a->recv_cq = ex.recv_cq;
  a->srq = ex.srq;
  return 0;
}

void rdma_destroy_qp(rdma_cm_id* handle) {
  if (handle == nullptr || handle->qp == nullptr) return;
  cm_id& id = cm_id::of(handle);
  ibv_qp* const qp = id.qp;
  {
    const std::lock_guard lock(id.home->mutex());
    id.qp = nullptr;
  }
  ibv_destroy_qp(qp);
  drop_queues(id);
}

int rdma_create_srq_ex(rdma_cm_id* handle, ibv_srq_init_attr_ex* a) {
  if (handle == nullptr || a == nullptr) return fail_with(EINVAL);
  if (handle->srq != nullptr || handle->verbs == nullptr) return fail_with(EINVAL);
  if ((a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && a->srq_type != IBV_SRQT_BASIC) return fail_with(EOPNOTSUPP);
  ibv_pd* const pd = (a->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 && a->pd != nullptr ? a->pd : handle->pd;
  ibv_srq_init_attr plain{.srq_context = a->srq_context, .attr = a->attr};
  handle->srq = ibv_create_srq(pd, &plain);
  if (handle->srq == nullptr) return -1;
  a->attr = plain.attr;
  handle->pd = pd;
  return 0;
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* a) {
  if (a == nullptr) return fail_with(EINVAL);
  ibv_srq_init_attr_ex ex{};
  ex.srq_context = a->srq_context;
  ex.attr = a->attr;
  if (pd != nullptr) {
    ex.comp_mask = IBV_SRQ_INIT_ATTR_PD;
    ex.pd = pd;
  }
  if (rdma_create_srq_ex(id, &ex) != 0) return -1;
  a->attr = ex.attr;
  return 0;
}

void rdma_destroy_srq(rdma_cm_id* id) {
  if (id == nullptr || id->srq == nullptr) return;
  ibv_destroy_srq(id->srq);
  id->srq = nullptr;
}

int rdma_create_ep(rdma_cm_id** out, rdma_addrinfo* info, ibv_pd* pd, ibv_qp_init_attr* a) {
  if (out == nullptr || info == nullptr) return fail_with(EINVAL);
  if (a != nullptr) a->qp_type = static_cast<ibv_qp_type>(info->ai_qp_type);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nullptr, &id, nullptr, static_cast<rdma_port_space>(info->ai_port_space)) != 0) return -1;
  int failed = 0;
  if ((info->ai_flags & RAI_PASSIVE) != 0) {
    failed = rdma_bind_addr(id, info->ai_src_addr);
    cm_id& made = cm_id::of(id);
    made.ep_pd = pd;
    if (a != nullptr) made.ep_qp = *a;
    if (pd != nullptr) id->pd = pd;
  } else {
    failed = rdma_resolve_addr(id, info->ai_src_addr, info->ai_dst_addr, 2000) != 0 ||
             rdma_resolve_route(id, 2000) != 0 || (a != nullptr && rdma_create_qp(id, pd, a) != 0);
  }
  if (failed != 0) {
    const int error = errno;
    rdma_destroy_ep(id);
    return fail_with(error);
  }
  *out = id;
  return 0;
}

void rdma_destroy_ep(rdma_cm_id* id) {
  if (id == nullptr) return;
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
}

int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** out) {
  if (listener == nullptr || out == nullptr) return fail_with(EINVAL);
  cm_id& l = cm_id::of(listener);
  if (l.sync == 0) return fail_with(EINVAL);
  if (listener->event != nullptr) {
    rdma_ack_cm_event(listener->event);
    listener->event = nullptr;
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listener->channel, &event) != 0) return -1;
  if (event->status != 0 || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    const int error = event->status != 0 ? -event->status : EINVAL;
    rdma_ack_cm_event(event);
    return fail_with(error);
  }
  if (l.ep_qp) {
    ibv_qp_init_attr a = *l.ep_qp;
    if (rdma_create_qp(event->id, l.ep_pd, &a) != 0) {
      const int error = errno;
      rdma_cm_id* const fresh = event->id;
      rdma_ack_cm_event(event);
      rdma_destroy_id(fresh);
      return fail_with(error);
    }
  }
  *out = event->id;
  (*out)->event = event;
  return 0;
}

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** out) {
  if (out == nullptr || (node == nullptr && service == nullptr && hints == nullptr)) return fail_with(EINVAL);
  const int flags = hints == nullptr ? 0 : hints->ai_flags;
  const bool passive = (flags & RAI_PASSIVE) != 0;
  addrinfo ask{};
  ask.ai_socktype = SOCK_STREAM;
  if ((flags & RAI_NUMERICHOST) != 0) ask.ai_flags |= AI_NUMERICHOST;
  if (passive) ask.ai_flags |= AI_PASSIVE;
  if (hints != nullptr && ((flags & RAI_FAMILY) != 0 || hints->ai_family != 0)) ask.ai_family = hints->ai_family;
  addrinfo* found = nullptr;
  if (node != nullptr || service != nullptr) {
    const int error = ::getaddrinfo(node, service, &ask, &found);
    // Zero and errno are what callers look at; negative is getaddrinfo's own number, as librdmacm gives it.
    if (error != 0) return error;
  }
  auto* const info = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  bool fine = info != nullptr;
  if (fine) {
    info->ai_flags = flags;
    info->ai_port_space =
        hints != nullptr && hints->ai_port_space != 0 ? hints->ai_port_space : static_cast<int>(RDMA_PS_TCP);
    info->ai_qp_type = hints != nullptr && hints->ai_qp_type != 0 ? hints->ai_qp_type : static_cast<int>(IBV_QPT_RC);
    if (found != nullptr) {
      info->ai_family = found->ai_family;
      fine = passive ? copy_address(found->ai_addr, found->ai_addrlen, info->ai_src_addr, info->ai_src_len)
                     : copy_address(found->ai_addr, found->ai_addrlen, info->ai_dst_addr, info->ai_dst_len);
    }
    const auto take = [&](sockaddr*& into, socklen_t& size, const sockaddr* from, socklen_t from_size) {
      if (!fine || into != nullptr || from == nullptr || from_size == 0) return;
      if (info->ai_family == 0) info->ai_family = from->sa_family;
      fine = copy_address(from, from_size, into, size);
    };
    if (hints != nullptr) {
      take(info->ai_src_addr, info->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
      take(info->ai_dst_addr, info->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
    }
  }
  if (found != nullptr) ::freeaddrinfo(found);
  if (!fine) {
    free_info(info);
    return fail_with(ENOMEM);
  }
  *out = info;
  return 0;
}

void rdma_freeaddrinfo(rdma_addrinfo* info) { free_info(info); }

}  // extern "C"
