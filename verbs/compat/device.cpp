// ibv_get_device_list() to ibv_query_gid(): the devices and what they say of themselves.
#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {
namespace {

constexpr int atomics = IBV_ATOMIC_NONE;

std::uint64_t guid_of(const device& d) {
  // Stable for an address, and not 0: what people compare it with are other addresses.
  std::uint64_t high = 0, low = 0;
  std::memcpy(&high, d.address.gid.s6_addr, 8);
  std::memcpy(&low, d.address.gid.s6_addr + 8, 8);
  return high ^ low ^ htobe64(0x0200'0000'0000'0000);
}

bool is_v4(const in6_addr& gid) { return IN6_IS_ADDR_V4MAPPED(&gid) != 0; }

ibv_mtu mtu_of(const device& d) {
  const std::uint32_t mtu = d.address.mtu;
  return mtu >= 4096   ? IBV_MTU_4096
         : mtu >= 2048 ? IBV_MTU_2048
         : mtu >= 1024 ? IBV_MTU_1024
         : mtu >= 512  ? IBV_MTU_512
                       : IBV_MTU_256;
}

void fill(const device& d, ibv_device_attr& a) {
  a = {};
  std::strncpy(a.fw_ver, "1.0.0", sizeof a.fw_ver - 1);
  a.node_guid = a.sys_image_guid = guid_of(d);
  a.max_mr_size = ~std::uint64_t{0};
  a.page_size_cap = ~std::uint64_t{0xFFF};
  a.max_qp = a.max_cq = a.max_srq = a.max_pd = 1 << 20;
  a.max_qp_wr = max_qp_requests;
  a.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_RC_RNR_NAK_GEN;
  a.max_sge = a.max_srq_sge = max_elements;
  a.max_sge_rd = 1;
  a.max_cqe = static_cast<int>(max_cqe);
  a.max_mr = 1 << 23;
  a.max_qp_rd_atom = a.max_qp_init_rd_atom = 128;
  a.max_res_rd_atom = 1 << 27;
  a.atomic_cap = static_cast<ibv_atomic_cap>(atomics);
  a.max_srq_wr = max_qp_requests;
  a.max_pkeys = 1;
  a.phys_port_cnt = 1;
}

int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* out, std::size_t size) {
  if (number != 1) return EINVAL;
  const device& d = *open_device::of(context).where;
  ibv_port_attr a{};
  a.state = IBV_PORT_ACTIVE;
  a.max_mtu = IBV_MTU_4096;
  a.active_mtu = mtu_of(d);
  a.gid_tbl_len = 1;
  a.max_msg_sz = ~std::uint32_t{0};
  a.pkey_tbl_len = 1;
  a.max_vl_num = 1;
  a.active_width = 2;   // 4x
  a.active_speed = 32;  // EDR; there is no such thing as its speed
  a.phys_state = 5;     // LinkUp
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < offsetof(ibv_device_attr_ex, comp_mask) + sizeof out->comp_mask) return EINVAL;
  ibv_device_attr_ex a{};
  fill(*open_device::of(context).where, a.orig_attr);
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
  a.phys_port_cnt_ex = 1;
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

struct shared {
  std::mutex mutex;
  std::vector<device*> all;
  bool looked = false;
  struct opened {
    device* where;
    ibv_context* context;
    ibv_pd* pd;
  };
  std::vector<opened> open;
};
shared& of_process() {
  static auto* const s = new shared;
  return *s;
}

ibv_context* open(device& where) {
  stack* const home = stack::get();
  if (home == nullptr) {
    errno = ENODEV;
    return nullptr;
  }
  auto made = std::make_unique<open_device>();
  if (made->async.descriptor() < 0) return nullptr;
  made->where = &where;
  made->home = home;
  verbs_context& ex = made->ex;
  ex.sz = sizeof ex;
  ex.query_port = query_port;
  ex.query_device_ex = query_device_ex;
  set_operations(ex);
  ex.context.device = &where;
  ex.context.cmd_fd = -1;
  ex.context.async_fd = made->async.descriptor();
  ex.context.num_comp_vectors = 1;
  ex.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  ::pthread_mutex_init(&ex.context.mutex, nullptr);
  return made.release()->handle();
}

}  // namespace

const std::vector<device*>& devices() {
  shared& s = of_process();
  const std::lock_guard lock(s.mutex);
  if (!s.looked) {
    s.looked = true;
    std::vector<std::string> unknown;
    for (auto& address : find_addresses(read_settings(), &unknown)) {
      auto* d = new device{};
      d->node_type = IBV_NODE_RNIC;
      d->transport_type = IBV_TRANSPORT_IWARP;
      std::strncpy(d->name, address.device.c_str(), sizeof d->name - 1);
      std::strncpy(d->dev_name, ("u" + address.device).c_str(), sizeof d->dev_name - 1);
      std::strncpy(d->dev_path, ("/sys/class/infiniband_verbs/u" + address.device).c_str(), sizeof d->dev_path - 1);
      std::strncpy(d->ibdev_path, ("/sys/class/infiniband/" + address.device).c_str(), sizeof d->ibdev_path - 1);
      d->address = std::move(address);
      s.all.push_back(d);
    }
    for (const auto& name : unknown)
      complain(std::string(addresses_variable) + ": no interface that is up has the address or name " + name);
  }
  return s.all;
}

device* device_with(const in6_addr& gid) {
  const auto& all = devices();
  const auto found =
      std::ranges::find_if(all, [&](const device* d) { return std::memcmp(&d->address.gid, &gid, sizeof gid) == 0; });
  if (found != all.end()) return *found;
  // A loopback address is reached through any device, rather one of its family.
  const bool v4 = is_v4(gid);
  if (!(v4 ? gid.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&gid)) || all.empty()) return nullptr;
  const auto near = std::ranges::find_if(all, [&](const device* d) { return is_v4(d->address.gid) == v4; });
  return near == all.end() ? all.front() : *near;
}

ibv_context* shared_context(device& where) {
  shared& s = of_process();
  const std::lock_guard lock(s.mutex);
  for (const auto& o : s.open) {
    if (o.where == &where && open_device::of(o.context).home == stack::get()) return o.context;
  }
  ibv_context* const context = open(where);
  if (context == nullptr) return nullptr;
  auto* const pd = new pd_handle(open_device::of(context).home->context);
  pd->context = context;
  s.open.push_back({&where, context, pd});
  return context;
}

ibv_pd* shared_pd(device& where) {
  ibv_context* const context = shared_context(where);
  if (context == nullptr) return nullptr;
  shared& s = of_process();
  const std::lock_guard lock(s.mutex);
  const auto found = std::ranges::find_if(s.open, [&](const auto& o) { return o.context == context; });
  return found->pd;
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

#undef ibv_get_device_list
#undef ibv_query_port

ibv_device** ibv_get_device_list(int* number) {
  const auto& all = devices();
  auto** const list = static_cast<ibv_device**>(std::calloc(all.size() + 1, sizeof(void*)));
  if (list == nullptr) return nullptr;
  std::ranges::copy(all, list);
  if (number != nullptr) *number = static_cast<int>(all.size());
  return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return missing(device) ? nullptr : device->name; }

__be64 ibv_get_device_guid(ibv_device* d) { return missing(d) ? 0 : guid_of(*static_cast<device*>(d)); }

int ibv_get_device_index(ibv_device* d) {
  const auto& all = devices();
  const auto found = std::ranges::find(all, d);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

ibv_context* ibv_open_device(ibv_device* d) { return missing(d) ? nullptr : open(*static_cast<device*>(d)); }

int ibv_close_device(ibv_context* context) {
  if (missing(context)) return -1;
  // The connection manager's stays, as in librdmacm.
  const auto& s = of_process().open;
  if (std::ranges::any_of(s, [&](const auto& o) { return o.context == context; })) return 0;
  ::pthread_mutex_destroy(&context->mutex);
  delete &open_device::of(context);
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  if (context == nullptr || out == nullptr) return EINVAL;
  fill(*open_device::of(context).where, *out);
  return 0;
}

int ibv_query_port(ibv_context* context, std::uint8_t number, _compat_ibv_port_attr* out) {
  if (context == nullptr || out == nullptr) return EINVAL;
  // The structure as it was before it grew: all but the last fields.
  return query_port(context, number, reinterpret_cast<ibv_port_attr*>(out), offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  if (context == nullptr || gid == nullptr || port != 1 || index != 0) return fail_with(EINVAL);
  std::memcpy(gid->raw, open_device::of(context).where->address.gid.s6_addr, sizeof gid->raw);
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                      std::uint32_t flags, std::size_t size) {
  if (context == nullptr || entry == nullptr || flags != 0 || port != 1) return EINVAL;
  if (index != 0) return ENODATA;
  ibv_gid_entry e{};
  std::memcpy(e.gid.raw, open_device::of(context).where->address.gid.s6_addr, sizeof e.gid.raw);
  e.port_num = 1;
  e.gid_type = IBV_GID_TYPE_IB;  // as siw's: there is no type for iWARP
  std::memcpy(entry, &e, std::min(size, sizeof e));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t size) {
  if (most == 0) return -EINVAL;
  const int error = _ibv_query_gid_ex(context, 1, 0, entries, flags, size);
  return error == 0 ? 1 : -error;
}

/// Private to rdma-core, and called by ibv_devinfo.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  if (context == nullptr || type == nullptr || port != 1 || index != 0) return fail_with(EINVAL);
  *type = 0;
  return 0;
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* key) {
  if (context == nullptr || key == nullptr || port != 1 || index != 0) return fail_with(EINVAL);
  *key = 0xFFFF;
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 key) {
  if (context == nullptr || port != 1 || key != 0xFFFF) return fail_with(EINVAL);
  return 0;
}

int ibv_fork_init() { return 0; }  // nothing is pinned: a child's copies never were what peers reach
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, std::size_t) { return 0; }
int ibv_dofork_range(void*, std::size_t) { return 0; }

}  // extern "C"
