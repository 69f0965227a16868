// ibv_wr_start() to ibv_wr_complete(): requests are built by calls, and posted together.
#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

qp_handle& of(ibv_qp_ex* qp) { return *static_cast<qp_handle*>(qp); }

void start(ibv_qp_ex* qp) {
  auto& q = of(qp);
  q.building_mutex.lock();
  q.building.requests.clear();
  q.building.elements.clear();
  q.building.counts.clear();
  q.building.error = 0;
}

verbs::send_request& begin(ibv_qp_ex* qp, verbs::opcode op) {
  auto& b = of(qp).building;
  auto& r = b.requests.emplace_back();
  b.counts.push_back(0);
  r.id = qp->wr_id;
  r.op = op;
  r.signaled = (qp->wr_flags & IBV_SEND_SIGNALED) != 0;
  r.solicited = (qp->wr_flags & IBV_SEND_SOLICITED) != 0;
  r.fence = (qp->wr_flags & IBV_SEND_FENCE) != 0;
  return r;
}
void refuse(ibv_qp_ex* qp, int error) {
  auto& b = of(qp).building;
  if (b.error == 0) b.error = error;
}

void send(ibv_qp_ex* qp) { begin(qp, verbs::opcode::send); }
void send_inv(ibv_qp_ex* qp, std::uint32_t key) {
  begin(qp, verbs::opcode::send_with_invalidate).invalidate = stag{key};
}
void rdma_write(ibv_qp_ex* qp, std::uint32_t key, std::uint64_t address) {
  begin(qp, verbs::opcode::rdma_write).remote = {stag{key}, address};
}
void rdma_read(ibv_qp_ex* qp, std::uint32_t key, std::uint64_t address) {
  begin(qp, verbs::opcode::rdma_read).remote = {stag{key}, address};
}
void local_inv(ibv_qp_ex* qp, std::uint32_t key) { begin(qp, verbs::opcode::local_invalidate).invalidate = stag{key}; }

void add_element(ibv_qp_ex* qp, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  auto& b = of(qp).building;
  if (b.requests.empty()) {
    refuse(qp, EINVAL);
    return;
  }
  b.elements.push_back({reinterpret_cast<void*>(address), length, stag{key}});
  ++b.counts.back();
}
void set_sge(ibv_qp_ex* qp, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
  add_element(qp, key, address, length);
}
void set_sge_list(ibv_qp_ex* qp, std::size_t number, const ibv_sge* list) {
  for (std::size_t i = 0; i < number; ++i) add_element(qp, list[i].lkey, list[i].addr, list[i].length);
}

// The program may reuse its memory as soon as the setter returns, so a copy is kept until the requests are posted.
void set_inline_data_list(ibv_qp_ex* qp, std::size_t number, const ibv_data_buf* list) {
  auto& q = of(qp);
  if (q.building.requests.empty()) {
    refuse(qp, EINVAL);
    return;
  }
  std::size_t size = 0;
  for (std::size_t i = 0; i < number; ++i) size += list[i].length;
  if (size > q.cap.max_inline_data) {
    refuse(qp, ENOMEM);
    return;
  }
  q.building.requests.back().inline_data = true;
  auto& copy = q.building.copies.emplace_back();
  copy.reserve(size);
  for (std::size_t i = 0; i < number; ++i) {
    const auto* octets = static_cast<const std::byte*>(list[i].addr);
    copy.insert(copy.end(), octets, octets + list[i].length);
  }
  if (size != 0) add_element(qp, 0, reinterpret_cast<std::uintptr_t>(copy.data()), static_cast<std::uint32_t>(size));
}
void set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  const ibv_data_buf one{.addr = address, .length = length};
  set_inline_data_list(qp, 1, &one);
}

int complete(ibv_qp_ex* qp) {
  auto& q = of(qp);
  const std::lock_guard lock(q.building_mutex, std::adopt_lock);
  auto& b = q.building;
  int error = b.error;
  if (error == 0) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < b.requests.size(); ++i) {
      b.requests[i].elements = std::span<const verbs::sge>(b.elements).subspan(at, b.counts[i]);
      at += b.counts[i];
    }
    const auto done = q.native.post_send_all(b.requests);
    if (!done) error = post_errno(done.error());
  }
  b.copies.clear();
  return error;
}
void abort(ibv_qp_ex* qp) {
  auto& q = of(qp);
  q.building.copies.clear();
  q.building_mutex.unlock();
}

// What iWARP has no message for. The program hears of it from ibv_wr_complete().
template <class... Arguments>
void not_supported(ibv_qp_ex* qp, Arguments...) {
  refuse(qp, EOPNOTSUPP);
}

}  // namespace

void set_extended(qp_handle& qp) {
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = abort;
  qp.wr_send = send;
  qp.wr_send_inv = send_inv;
  qp.wr_rdma_write = rdma_write;
  qp.wr_rdma_read = rdma_read;
  qp.wr_local_inv = local_inv;
  qp.wr_set_sge = set_sge;
  qp.wr_set_sge_list = set_sge_list;
  qp.wr_set_inline_data = set_inline_data;
  qp.wr_set_inline_data_list = set_inline_data_list;
  qp.wr_send_imm = not_supported<__be32>;
  qp.wr_rdma_write_imm = not_supported<std::uint32_t, std::uint64_t, __be32>;
  qp.wr_atomic_cmp_swp = not_supported<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  qp.wr_atomic_fetch_add = not_supported<std::uint32_t, std::uint64_t, std::uint64_t>;
  qp.wr_atomic_write = not_supported<std::uint32_t, std::uint64_t, const void*>;
  qp.wr_bind_mw = not_supported<ibv_mw*, std::uint32_t, const ibv_mw_bind_info*>;
  qp.wr_send_tso = not_supported<void*, std::uint16_t, std::uint16_t>;
  qp.wr_set_ud_addr = not_supported<ibv_ah*, std::uint32_t, std::uint32_t>;
  qp.wr_set_xrc_srqn = not_supported<std::uint32_t>;
}

}  // namespace iwarp::compat
