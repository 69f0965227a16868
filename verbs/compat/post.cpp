// The data path: libibverbs' requests become native ones.
#include <array>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

// As many as go in one turn; longer chains take several. Both arrays are filled anew for each call, so they are small.
constexpr std::size_t turn_requests = 16;
constexpr std::size_t turn_elements = max_elements;

struct elements {
  std::array<verbs::sge, turn_elements> list;
  std::size_t used = 0;

  /// No room: nullopt. More than fit in an empty list cannot be posted at all.
  std::optional<std::span<const verbs::sge>> add(const ibv_sge* from, int number) noexcept {
    const auto n = static_cast<std::size_t>(number);
    if (n > list.size() - used) return std::nullopt;
    const std::size_t begin = used;
    for (std::size_t i = 0; i < n; ++i) {
      list[used++] = {reinterpret_cast<void*>(from[i].addr), from[i].length, stag{from[i].lkey}};
    }
    return std::span<const verbs::sge>(list).subspan(begin, n);
  }
};

bool convert(const ibv_send_wr& wr, verbs::send_request& out) noexcept {
  out.id = wr.wr_id;
  out.signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  out.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  out.fence = (wr.send_flags & IBV_SEND_FENCE) != 0;
  out.inline_data = (wr.send_flags & IBV_SEND_INLINE) != 0;
  switch (wr.opcode) {
    case IBV_WR_SEND:
      out.op = verbs::opcode::send;
      return true;
    case IBV_WR_SEND_WITH_INV:
      out.op = verbs::opcode::send_with_invalidate;
      out.invalidate = stag{wr.invalidate_rkey};
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      out.op = wr.opcode == IBV_WR_RDMA_WRITE ? verbs::opcode::rdma_write : verbs::opcode::rdma_read;
      out.inline_data = out.inline_data && wr.opcode == IBV_WR_RDMA_WRITE;
      out.remote = {stag{wr.wr.rdma.rkey}, wr.wr.rdma.remote_addr};
      return true;
    case IBV_WR_LOCAL_INV:
      out.op = verbs::opcode::local_invalidate;
      out.invalidate = stag{wr.invalidate_rkey};
      return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_BIND_MW:
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1:
    case IBV_WR_ATOMIC_WRITE:
      break;
  }
  return false;
}

bool convert(const ibv_recv_wr& wr, verbs::receive_request& out) noexcept {
  out.id = wr.wr_id;
  return true;
}

/// Posts a chain by `post`, turn by turn, until one is refused; `bad` is that one then.
template <class Request, class Wr, class Post>
int post_chain(Wr* wr, Wr** bad, Post&& post) {
  std::array<Request, turn_requests> requests;
  while (wr != nullptr) {
    elements memory;
    std::size_t n = 0;
    int refused = 0;
    Wr* const first = wr;
    while (wr != nullptr && n < requests.size()) {
      auto& request = requests[n] = {};
      const bool listed = wr->num_sge == 0 || (wr->num_sge > 0 && wr->sg_list != nullptr);
      if (!listed || !convert(*wr, request)) {
        refused = listed ? EOPNOTSUPP : EINVAL;
        break;
      }
      if (wr->num_sge != 0) {
        const auto list = memory.add(wr->sg_list, wr->num_sge);
        if (!list) {
          if (n == 0) refused = EINVAL;
          break;
        }
        request.elements = *list;
      }
      ++n;
      wr = wr->next;
    }
    std::size_t posted = 0;
    if (n != 0) {
      const auto done = post(std::span<const Request>(requests.data(), n), posted);
      if (!done) {
        wr = first;
        for (std::size_t i = 0; i < posted; ++i) wr = wr->next;
        refused = post_errno(done.error());
      }
    }
    if (refused != 0) {
      if (bad != nullptr) *bad = wr;
      return refused;
    }
  }
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return post_chain<verbs::send_request>(
      wr, bad, [&](auto requests, auto& posted) { return qp_handle::of(qp).native.post_send(requests, posted); });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return post_chain<verbs::receive_request>(
      wr, bad, [&](auto requests, auto& posted) { return qp_handle::of(qp).native.post_receive(requests, posted); });
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return post_chain<verbs::receive_request>(
      wr, bad, [&](auto requests, auto& posted) { return srq_handle::of(srq).native->post(requests, posted); });
}

}  // namespace

int post_errno(const std::error_code& error) noexcept {
  const int e = errno_of(error);
  return e == ENOTCONN ? EINVAL : e;
}

void set_posting_operations(verbs_context& ex) {
  ex.context.ops.post_send = post_send;
  ex.context.ops.post_recv = post_recv;
  ex.context.ops.post_srq_recv = post_srq_recv;
}

}  // namespace iwarp::compat
