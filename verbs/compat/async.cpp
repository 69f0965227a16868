// Asynchronous events of a device, and which functions its context points to.
#include "verbs/compat/handles.hpp"

namespace iwarp::compat {

void set_operations(verbs_context& ex) {
  set_completion_operations(ex);
  set_posting_operations(ex);
  set_queue_pair_operations(ex);
  set_shared_receive_operations(ex);
  set_refusing_operations(ex);
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* out) {
  if (context == nullptr || out == nullptr) return fail_with(EINVAL);
  const auto event = open_device::of(context).async.take();
  if (!event) return -1;
  *out = *event;
  const auto count = [](pthread_mutex_t& mutex, std::uint32_t& taken) {
    ::pthread_mutex_lock(&mutex);
    ++taken;
    ::pthread_mutex_unlock(&mutex);
  };
  if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
    count(event->element.srq->mutex, srq_handle::of(event->element.srq).events_taken);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    count(event->element.cq->mutex, cq_handle::of(event->element.cq).async_events_taken);
  } else {
    count(event->element.qp->mutex, qp_handle::of(event->element.qp).events_taken);
  }
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (event == nullptr) return;
  const auto complete = [](auto* object) {
    ::pthread_mutex_lock(&object->mutex);
    ++object->events_completed;
    ::pthread_cond_signal(&object->cond);
    ::pthread_mutex_unlock(&object->mutex);
  };
  if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
    complete(event->element.srq);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq* const cq = event->element.cq;
    ::pthread_mutex_lock(&cq->mutex);
    ++cq->async_events_completed;
    ::pthread_cond_signal(&cq->cond);
    ::pthread_mutex_unlock(&cq->mutex);
  } else if (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED || event->event_type == IBV_EVENT_QP_FATAL) {
    complete(event->element.qp);
  }
}

}  // extern "C"
