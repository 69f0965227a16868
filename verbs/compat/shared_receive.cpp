// Shared receive queues.
#include <algorithm>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

ibv_srq* create(ibv_pd* pd, void* user, ibv_srq_attr& a) {
  if (missing(pd)) return nullptr;
  if (a.max_wr > max_qp_requests || a.max_sge > max_elements) {
    errno = EINVAL;
    return nullptr;
  }
  stack& home = *open_device::of(pd->context).home;
  auto srq = std::make_unique<srq_handle>();
  srq->user_data = home.begin(*srq);
  srq->max_requests = std::max(a.max_wr, 1U);
  srq->max_sge = std::max(a.max_sge, 1U);
  auto native = verbs::shared_receive_queue::create(pd_handle::of(pd).native, {.max_requests = srq->max_requests,
                                                                               .max_sge = srq->max_sge,
                                                                               .channel = home.events,
                                                                               .user_data = srq->user_data});
  if (!native) {
    home.end(srq->user_data);
    errno = errno_of(native.error());
    return nullptr;
  }
  srq->native = *std::move(native);
  srq->context = pd->context;
  srq->srq_context = user;
  srq->pd = pd;
  ::pthread_mutex_init(&srq->mutex, nullptr);
  ::pthread_cond_init(&srq->cond, nullptr);
  pd_handle::of(pd).users.fetch_add(1);
  a.max_wr = srq->max_requests;
  a.max_sge = srq->max_sge;
  return srq.release();
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* a) {
  if (context == nullptr || a == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  constexpr std::uint32_t understood = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  const bool basic = (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || a->srq_type == IBV_SRQT_BASIC;
  if ((a->comp_mask & ~understood) != 0 || !basic) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return create((a->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? a->pd : nullptr, a->srq_context, a->attr);
}

}  // namespace

void srq_handle::on_event(const verbs::connection_event&) {
  limit = 0;  // one shot
  ibv_async_event e{};
  e.element.srq = this;
  e.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  open_device::of(context).async.put(e);
}

void set_shared_receive_operations(verbs_context& ex) { ex.create_srq_ex = create_srq_ex; }

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* a) {
  if (missing(a)) return nullptr;
  return create(pd, a->srq_context, a->attr);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* a, int mask) {
  if (srq == nullptr || a == nullptr) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  auto& s = srq_handle::of(srq);
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    if (a->srq_limit > s.max_requests) return EINVAL;
    {
      const std::lock_guard lock(open_device::of(srq->context).home->mutex());
      s.limit = a->srq_limit;
    }
    s.native->arm_limit(a->srq_limit);
  }
  return 0;
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* a) {
  if (srq == nullptr || a == nullptr) return EINVAL;
  auto& s = srq_handle::of(srq);
  const std::lock_guard lock(open_device::of(srq->context).home->mutex());
  *a = {.max_wr = s.max_requests, .max_sge = s.max_sge, .srq_limit = s.limit};
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  if (srq == nullptr) return EINVAL;
  auto& s = srq_handle::of(srq);
  if (s.users.load() != 0) return EBUSY;
  open_device& where = open_device::of(srq->context);
  where.home->end(s.user_data);
  where.async.remove_if(
      [&](const ibv_async_event& e) { return e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e.element.srq == srq; },
      [](const ibv_async_event&) {});
  ::pthread_mutex_lock(&srq->mutex);
  while (srq->events_completed != s.events_taken) ::pthread_cond_wait(&srq->cond, &srq->mutex);
  ::pthread_mutex_unlock(&srq->mutex);
  ::pthread_cond_destroy(&srq->cond);
  ::pthread_mutex_destroy(&srq->mutex);
  pd_handle::of(srq->pd).users.fetch_sub(1);
  delete &s;
  return 0;
}

}  // extern "C"
