// Event channels, and what native events are called there.
#include <algorithm>
#include <cstring>
#include <utility>

#include "mpa/error.hpp"
#include "verbs/compat/cm.hpp"

namespace iwarp::compat {
namespace {

constexpr std::size_t max_told = 255;  // private_data_len has 8 bits

void copy_private_data(cm_event& to, const std::vector<std::byte>& from) {
  const std::size_t size = std::min(from.size(), max_told);
  std::copy_n(from.begin(), size, to.data.begin());
  to.param.conn.private_data = size == 0 ? nullptr : to.data.data();
  to.param.conn.private_data_len = static_cast<std::uint8_t>(size);
}

std::uint8_t depth_of(unsigned n) { return static_cast<std::uint8_t>(std::min(n, 255U)); }

/// The last that were destroyed are kept for a while: programs leave threads in rdma_get_cm_event().
void retire(std::unique_ptr<cm_channel> gone) {
  struct graveyard {
    std::mutex mutex;
    std::deque<std::unique_ptr<cm_channel>> channels;
  };
  static auto* const last = new graveyard;
  static constexpr std::size_t kept = 64;
  const std::lock_guard lock(last->mutex);
  last->channels.push_back(std::move(gone));
  if (last->channels.size() > kept) last->channels.pop_front();
}

int status_of(const verbs::connection_event& event, int otherwise) {
  if (event.tcp_error) return -errno_of(event.tcp_error);
  const int e = event.reason ? errno_of(event.reason) : otherwise;
  return e == EPROTO || e == 0 ? -otherwise : -e;
}

}  // namespace

void cm_id::tell(std::unique_ptr<cm_event> e) {
  e->id = e->id == nullptr ? this : e->id;
  e->counted = this;
  cm_channel::of(channel).events.put(std::move(e));
}

void cm_id::tell(rdma_cm_event_type type, int status) {
  auto e = std::make_unique<cm_event>();
  e->event = type;
  e->status = status;
  tell(std::move(e));
}

void cm_id::forget_qp() {
  carried_by = nullptr;
  if (std::exchange(connected, false)) tell(RDMA_CM_EVENT_DISCONNECTED);
}

void cm_id::on_connection(const verbs::connection_event& e) {
  auto out = std::make_unique<cm_event>();
  copy_private_data(*out, e.private_data);
  switch (e.kind) {
    case verbs::event_kind::established:
      out->event = RDMA_CM_EVENT_ESTABLISHED;
      connected = true;
      if (carried_by != nullptr) {
        carried_by->asked = carried_by->qp_base.state = IBV_QPS_RTS;
        out->param.conn.initiator_depth = depth_of(carried_by->native.ord());
        out->param.conn.responder_resources = depth_of(carried_by->native.ird());
      }
      break;
    case verbs::event_kind::rejected:
      out->event = RDMA_CM_EVENT_REJECTED;
      out->status = -ECONNREFUSED;
      break;
    case verbs::event_kind::unreachable:
      out->status = status_of(e, ETIMEDOUT);
      // As the kernel has it: nobody listens there is a rejection.
      out->event = out->status == -ECONNREFUSED ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE;
      break;
    case verbs::event_kind::connect_error:
      out->event = RDMA_CM_EVENT_CONNECT_ERROR;
      out->status = status_of(e, ECONNRESET);
      break;
    case verbs::event_kind::disconnected:
      out->event = RDMA_CM_EVENT_DISCONNECTED;
      connected = false;
      break;
    case verbs::event_kind::connect_request:
    case verbs::event_kind::receive_limit:
      return;
  }
  tell(std::move(out));
}

void cm_id::on_event(const verbs::connection_event& e) {
  if (e.kind != verbs::event_kind::connect_request) return;
  auto fresh = std::make_unique<cm_id>(ps);
  fresh->home = home;
  fresh->channel = channel;
  fresh->context = context;
  fresh->request = e.request;
  fresh->bound = fresh->resolved = true;
  store(e.local, fresh->route.addr.src_storage);
  store(e.remote, fresh->route.addr.dst_storage);
  const in6_addr here = gid_of(&fresh->route.addr.src_addr);
  device* const where = device_with(here);
  if (where == nullptr) return;  // not an address that was to be offered: the request is rejected
  fresh->bind_to(where);
  // A peer of revision 1 says nothing of its depths.
  fresh->offered_depth = e.mpa_revision < 2 ? 16 : depth_of(e.peer_ird);
  fresh->offered_resources = e.mpa_revision < 2 ? 16 : depth_of(e.peer_ord);
  auto out = std::make_unique<cm_event>();
  out->event = RDMA_CM_EVENT_CONNECT_REQUEST;
  out->listen_id = this;
  copy_private_data(*out, e.private_data);
  out->param.conn.initiator_depth = fresh->offered_depth;
  out->param.conn.responder_resources = fresh->offered_resources;
  out->id = fresh.release();
  tell(std::move(out));
}

int complete(cm_id& id) {
  if (id.sync == 0) return 0;
  if (id.event != nullptr) {
    rdma_ack_cm_event(id.event);
    id.event = nullptr;
  }
  if (rdma_get_cm_event(id.channel, &id.event) != 0) return -1;
  if (id.event->status == 0) return 0;
  if (id.event->event == RDMA_CM_EVENT_REJECTED) return fail_with(ECONNREFUSED);
  return fail_with(id.event->status < 0 ? -id.event->status : id.event->status);
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  if (devices().empty()) {
    errno = ENODEV;
    return nullptr;
  }
  auto channel = std::make_unique<cm_channel>();
  return channel->fd < 0 ? nullptr : channel.release();
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (channel == nullptr) return;
  std::unique_ptr<cm_channel> gone(&cm_channel::of(channel));
  gone->events.close();
  retire(std::move(gone));
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** out) {
  if (channel == nullptr || out == nullptr) return fail_with(EINVAL);
  auto taken = cm_channel::of(channel).events.take();
  if (!taken) return -1;
  cm_event* const event = taken->release();
  ::pthread_mutex_lock(&event->counted->acknowledged_mutex);
  ++event->counted->taken;
  ::pthread_mutex_unlock(&event->counted->acknowledged_mutex);
  // A listener whose calls wait hands on connections whose calls wait.
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->counted->sync != 0) rdma_migrate_id(event->id, nullptr);
  *out = event;
  return 0;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return fail_with(EINVAL);
  const std::unique_ptr<cm_event> owned(static_cast<cm_event*>(event));
  cm_id& id = *owned->counted;
  ::pthread_mutex_lock(&id.acknowledged_mutex);
  ++id.acks;
  ::pthread_cond_signal(&id.acknowledged);
  ::pthread_mutex_unlock(&id.acknowledged_mutex);
  return 0;
}

}  // extern "C"
