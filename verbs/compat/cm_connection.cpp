// Connections: listening, connecting, accepting, rejecting, ending.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "verbs/compat/cm.hpp"

namespace iwarp::compat {
namespace {

void apply(const settings& s, iwarp::verbs::connection_options& options) {
  options.crc = s.crc;
  options.markers = s.markers;
  options.shortage = s.shortage;
}

const_bytes private_data(const rdma_conn_param* param) {
  if (param == nullptr || param->private_data == nullptr) return {};
  return {static_cast<const std::byte*>(param->private_data), param->private_data_len};
}

// What there is for a depth that the program leaves open (RDMA_MAX_RESP_RES), and the most that is offered.
constexpr std::uint16_t max_depth = 128;
std::uint16_t depth(std::uint8_t asked, std::uint16_t otherwise) {
  return asked == RDMA_MAX_RESP_RES ? otherwise : std::min<std::uint16_t>(asked, max_depth);
}

void release_port(cm_id& id) {
  if (id.reservation >= 0) ::close(id.reservation);
  id.reservation = -1;
}

}  // namespace

qp_handle* cm_id::find_qp(const rdma_conn_param* param) {
  if (qp != nullptr) return &qp_handle::of(qp);
  qp_handle* const found = param == nullptr ? nullptr : qp_with(param->qp_num);
  if (found == nullptr) errno = EINVAL;
  return found;
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

int rdma_listen(rdma_cm_id* handle, int backlog) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (id.listener_key != 0 || id.resolved) return fail_with(EINVAL);
  if (!id.bound) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (rdma_bind_addr(handle, reinterpret_cast<sockaddr*>(&any)) != 0) return -1;
  }
  const auto where = endpoint_of(id.route.addr.src_addr);
  if (!where) return fail_with(EINVAL);
  iwarp::verbs::listen_options options;
  apply(id.home->options, options);
  options.ird = options.ord = max_depth;
  options.backlog = std::max(backlog, 0);
  options.v6_only = id.v6_only;
  options.mpa_revision = id.home->options.mpa_revision;
  const std::lock_guard lock(id.home->mutex());
  options.user_data = id.listener_key = id.home->begin(id);
  options.socket = std::exchange(id.reservation, -1);
  auto made = iwarp::verbs::listener::create(id.home->events, *where, options);
  if (!made) {
    id.home->end(id.listener_key);
    id.listener_key = 0;
    return fail_with(made.error());
  }
  id.listener = *std::move(made);
  return 0;
}

int rdma_connect(rdma_cm_id* handle, rdma_conn_param* param) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!id.resolved || id.request || id.carried_by != nullptr) return fail_with(EINVAL);
  const auto to = endpoint_of(id.route.addr.dst_addr);
  auto from = endpoint_of(id.route.addr.src_addr);
  if (!to || !from) return fail_with(EINVAL);
  iwarp::verbs::connect_options options;
  apply(id.home->options, options);
  options.mpa_revision = id.home->options.mpa_revision;
  options.private_data = private_data(param);
  options.ird = param == nullptr ? max_depth : depth(param->responder_resources, max_depth);
  options.ord = param == nullptr ? max_depth : depth(param->initiator_depth, max_depth);
  options.local = from;
  {
    const std::lock_guard lock(id.home->mutex());
    qp_handle* const qp = id.find_qp(param);
    if (qp == nullptr) return -1;
    release_port(id);
    qp->owner = &id;
    id.carried_by = qp;
    const auto begun = qp->native.connect(*to, options);
    if (!begun) {
      qp->owner = nullptr;  // another try is possible
      id.carried_by = nullptr;
      return fail_with(begun.error());
    }
  }
  return complete(id);
}

int rdma_accept(rdma_cm_id* handle, rdma_conn_param* param) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!id.request) return fail_with(EINVAL);
  iwarp::verbs::accept_options options;
  options.private_data = private_data(param);
  const std::uint16_t resources = std::min<std::uint16_t>(id.offered_resources, max_depth);
  const std::uint16_t initiator = std::min<std::uint16_t>(id.offered_depth, max_depth);
  options.ird = param == nullptr ? resources : depth(param->responder_resources, resources);
  options.ord = param == nullptr ? initiator : depth(param->initiator_depth, initiator);
  {
    const std::lock_guard lock(id.home->mutex());
    qp_handle* const qp = id.find_qp(param);
    if (qp == nullptr) return -1;
    qp->owner = &id;
    id.carried_by = qp;
    const auto begun = qp->native.accept(id.request, options);
    if (!begun) return fail_with(begun.error());
    id.request = {};
  }
  return complete(id);
}

int rdma_reject(rdma_cm_id* handle, const void* data, std::uint8_t size) {
  if (handle == nullptr || (data == nullptr && size != 0)) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!id.request) return fail_with(EINVAL);
  const auto done = iwarp::verbs::reject(id.request, {static_cast<const std::byte*>(data), size});
  id.request = {};
  return done ? 0 : fail_with(done.error());
}

int rdma_disconnect(rdma_cm_id* handle) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  {
    const std::lock_guard lock(id.home->mutex());
    if (id.carried_by == nullptr) return fail_with(EINVAL);
    const auto done = id.carried_by->native.disconnect();
    if (!done) return fail_with(EINVAL);
  }
  return complete(id);
}

int rdma_establish(rdma_cm_id*) {
  return fail_with(EINVAL);
}  // for ids without a queue pair, which InfiniBand alone has
int rdma_notify(rdma_cm_id* handle, ibv_event_type) { return handle == nullptr ? fail_with(EINVAL) : 0; }

int rdma_init_qp_attr(rdma_cm_id* handle, ibv_qp_attr* a, int* mask) {
  if (handle == nullptr || a == nullptr || mask == nullptr) return fail_with(EINVAL);
  *mask = IBV_QP_STATE;
  if (a->qp_state == IBV_QPS_INIT) {
    *mask |= IBV_QP_ACCESS_FLAGS;
    a->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  }
  return 0;
}

// Multicast and enhanced connection establishment: InfiniBand's.
int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) { return fail_with(EOPNOTSUPP); }
int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex*, void*) { return fail_with(EOPNOTSUPP); }
int rdma_leave_multicast(rdma_cm_id*, sockaddr*) { return fail_with(EADDRNOTAVAIL); }
int rdma_get_remote_ece(rdma_cm_id*, ibv_ece* ece) {
  if (ece == nullptr) return fail_with(EINVAL);
  *ece = {};
  return 0;
}
int rdma_set_local_ece(rdma_cm_id*, ibv_ece*) { return fail_with(EOPNOTSUPP); }
int rdma_reject_ece(rdma_cm_id* id, const void* data, std::uint8_t size) { return rdma_reject(id, data, size); }

}  // extern "C"
