// What iWARP, or this stack, does not have: each call says so with the errno its manual page names.
#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

ibv_mw* no_window(ibv_pd*, ibv_mw_type) {
  errno = EOPNOTSUPP;
  return nullptr;
}
int no_bind(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return EOPNOTSUPP; }
int no_window_to_free(ibv_mw*) { return EINVAL; }

template <class T>
T* none(int error = EOPNOTSUPP) {
  errno = error;
  return nullptr;
}

}  // namespace

// The inline functions of verbs.h look whether a pointer of verbs_context is set, and say EOPNOTSUPP themselves; those
// of ibv_context_ops they call without looking.
void set_refusing_operations(verbs_context& ex) {
  ex.context.ops.alloc_mw = no_window;
  ex.context.ops.bind_mw = no_bind;
  ex.context.ops.dealloc_mw = no_window_to_free;
}

}  // namespace iwarp::compat

using iwarp::compat::fail_with;
using iwarp::compat::none;

extern "C" {

// Address handles and multicast: unreliable datagrams.
ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) { return none<ibv_ah>(); }
ibv_ah* ibv_create_ah_from_wc(ibv_pd*, ibv_wc*, ibv_grh*, std::uint8_t) { return none<ibv_ah>(); }
int ibv_init_ah_from_wc(ibv_context*, std::uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*) { return fail_with(EOPNOTSUPP); }
int ibv_destroy_ah(ibv_ah*) { return EINVAL; }
int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return fail_with(EOPNOTSUPP);
}

// Sharing objects between processes, device memory, DMA-BUF, enhanced connection establishment.
ibv_context* ibv_import_device(int) { return none<ibv_context>(); }
ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) { return none<ibv_pd>(); }
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) { return none<ibv_mr>(); }
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) { return none<ibv_dm>(); }
void ibv_unimport_dm(ibv_dm*) {}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) { return none<ibv_mr>(); }
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
  if (ece == nullptr) return EINVAL;
  *ece = {};
  return 0;
}
int ibv_set_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }

}  // extern "C"
