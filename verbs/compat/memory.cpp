// Protection domains and memory regions.
#include <cstdlib>
#include <cstring>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

constexpr unsigned understood = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

result<verbs::memory_region> make(pd_handle& pd, void* address, std::size_t length, unsigned flags) {
  using verbs::access;
  auto rights = access::local_read;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) rights = rights | access::remote_read;
  if ((flags & IBV_ACCESS_ZERO_BASED) != 0) rights = rights | access::zero_based;
  auto* const octets = static_cast<std::byte*>(address);
  if ((flags & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return verbs::memory_region::create_read_only(pd.native, {octets, length}, rights);
  }
  rights = rights | access::local_write;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) rights = rights | access::remote_write;
  return verbs::memory_region::create(pd.native, {octets, length}, rights);
}

/// What peers may write this side must be able to write (VERBS s7.2).
bool lacks_local_write(unsigned access) noexcept {
  constexpr unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return (access & remote) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
}

ibv_mr* register_memory(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  if (missing(pd)) return nullptr;
  if ((access & ~understood) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (lacks_local_write(access)) {
    errno = EINVAL;
    return nullptr;
  }
  const bool zero_based = iova == 0 && address != nullptr;
  if (iova != reinterpret_cast<std::uintptr_t>(address) && !zero_based) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (zero_based) access |= IBV_ACCESS_ZERO_BASED;
  auto& owner = pd_handle::of(pd);
  auto native = make(owner, address, length, access);
  if (!native) {
    errno = errno_of(native.error());
    return nullptr;
  }
  auto* const mr = new mr_handle;
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = mr->rkey = native->key().value;
  mr->handle = mr->lkey;
  mr->native = *std::move(native);
  mr->access = access;
  owner.users.fetch_add(1);
  return mr;
}

}  // namespace
}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (missing(context)) return nullptr;
  auto* const pd = new pd_handle(open_device::of(context).home->context);
  pd->context = context;
  return pd;
}

int ibv_dealloc_pd(ibv_pd* pd) {
  if (pd == nullptr) return EINVAL;
  auto& p = pd_handle::of(pd);
  if (p.users.load() != 0) return EBUSY;
  delete &p;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return register_memory(pd, address, length, reinterpret_cast<std::uintptr_t>(address), static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return register_memory(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return register_memory(pd, address, length, iova, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  if (mr == nullptr) return EINVAL;
  auto* const m = static_cast<mr_handle*>(mr);
  pd_handle::of(mr->pd).users.fetch_sub(1);
  delete m;
  return 0;
}

/// Another registration under the same handle. The old one is gone when it fails, as IBV_REREG_MR_ERR_CMD says.
int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (mr == nullptr || flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return IBV_REREG_MR_ERR_INPUT;
  auto* const m = static_cast<mr_handle*>(mr);
  ibv_pd* const new_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? pd : mr->pd;
  const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const unsigned rights = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? static_cast<unsigned>(access) : m->access;
  if (new_pd == nullptr || (moved && address == nullptr) || (rights & ~understood) != 0 || lacks_local_write(rights)) {
    return IBV_REREG_MR_ERR_INPUT;
  }
  void* const where = moved ? address : mr->addr;
  const std::size_t size = moved ? length : mr->length;
  auto native = make(pd_handle::of(new_pd), where, size, rights);
  if (!native) {
    errno = errno_of(native.error());
    return IBV_REREG_MR_ERR_CMD;
  }
  pd_handle::of(mr->pd).users.fetch_sub(1);
  pd_handle::of(new_pd).users.fetch_add(1);
  m->native = *std::move(native);
  m->access = rights;
  mr->pd = new_pd;
  mr->addr = where;
  mr->length = size;
  mr->lkey = mr->rkey = m->native.key().value;
  return 0;
}

}  // extern "C"
