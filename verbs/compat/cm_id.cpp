// Ids: creation, addresses, options.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "verbs/compat/cm.hpp"

namespace iwarp::compat {
namespace {

librdmacm_device& device_limits() {
  static librdmacm_device all{.max_qpsize = 16384};
  return all;
}

bool is_wildcard(const sockaddr& address) {
  const in6_addr gid = gid_of(&address);
  static constexpr std::uint8_t any_v4[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(&gid, any_v4, sizeof any_v4) == 0 || IN6_IS_ADDR_UNSPECIFIED(&gid);
}

in_port_t& port_of(sockaddr& address) {
  return address.sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

bool is_internet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

bool is_stream(const cm_id& id) {
  if (id.ps == RDMA_PS_TCP) return true;
  complain("this program asks for unreliable datagrams (RDMA_PS_UDP or RDMA_PS_IPOIB), which iWARP does not have");
  return false;
}

/// The source address that the kernel would take towards `destination`, which becomes a loopback address if it is a
/// wildcard. errno.
bool find_source(sockaddr_storage& source, sockaddr_storage& destination) {
  auto& from = reinterpret_cast<sockaddr&>(source);
  auto& to = reinterpret_cast<sockaddr&>(destination);
  const int fd = ::socket(to.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool fine = true;
  const in_port_t port = is_internet(&from) ? port_of(from) : 0;
  if (is_internet(&from) && !is_wildcard(from)) {
    sockaddr_storage without_port = source;
    port_of(reinterpret_cast<sockaddr&>(without_port)) = 0;
    fine = ::bind(fd, reinterpret_cast<sockaddr*>(&without_port), size_of(from)) == 0;
  }
  sockaddr_storage with_port = destination;
  auto& target = reinterpret_cast<sockaddr&>(with_port);
  if (port_of(target) == 0) port_of(target) = htons(9);  // any: nothing is sent
  fine = fine && ::connect(fd, &target, size_of(target)) == 0;
  socklen_t size = sizeof source;
  fine = fine && ::getsockname(fd, reinterpret_cast<sockaddr*>(&source), &size) == 0;
  if (fine && is_wildcard(to)) {
    const in_port_t to_port = port_of(to);
    destination = source;
    port_of(to) = to_port;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  if (fine) port_of(from) = port;
  return fine;
}

}  // namespace

cm_id::cm_id(rdma_port_space space) {
  ps = space;
  qp_type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
  limits = &device_limits();
}

cm_id::~cm_id() {
  if (reservation >= 0) ::close(reservation);
  ::pthread_cond_destroy(&acknowledged);
  ::pthread_mutex_destroy(&acknowledged_mutex);
}

void cm_id::bind_to(device* where) {
  verbs = where == nullptr ? nullptr : shared_context(*where);
  pd = where == nullptr ? nullptr : shared_pd(*where);
  port_num = where == nullptr ? 0 : 1;
}

std::optional<iwarp::verbs::endpoint> endpoint_of(const sockaddr& address) {
  if (!is_internet(&address)) return std::nullopt;
  iwarp::verbs::endpoint out;
  const socklen_t size = size_of(address);
  out.resize(size);
  std::memcpy(out.data(), &address, size);
  return out;
}

void store(const iwarp::verbs::endpoint& from, sockaddr_storage& into) {
  into = {};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(from.data());
  if (from.data()->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(into);
    v4.sin_family = AF_INET;
    v4.sin_port = v6->sin6_port;
    std::memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, 4);
    return;
  }
  std::memcpy(&into, from.data(), from.size());
}

socklen_t size_of(const sockaddr& address) noexcept {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context, rdma_port_space space) {
  if (out == nullptr) return fail_with(EINVAL);
  if (space != RDMA_PS_TCP && space != RDMA_PS_UDP && space != RDMA_PS_IPOIB) return fail_with(EPROTONOSUPPORT);
  stack* const home = stack::get();
  if (home == nullptr || devices().empty()) return fail_with(ENODEV);
  auto id = std::make_unique<cm_id>(space);
  id->home = home;
  id->context = context;
  id->sync = channel == nullptr ? 1 : 0;
  id->channel = channel == nullptr ? rdma_create_event_channel() : channel;
  if (id->channel == nullptr) return -1;
  *out = id.release();
  return 0;
}

int rdma_destroy_id(rdma_cm_id* handle) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  std::vector<cm_id*> unanswered;
  {
    const std::lock_guard lock(id.home->mutex());
    if (id.carried_by != nullptr) id.carried_by->owner = nullptr;
    if (id.listener_key != 0) id.home->end(id.listener_key);
  }
  id.listener = {};
  cm_channel::of(id.channel)
      .events.remove_if([&](const std::unique_ptr<cm_event>& e) { return e->counted == &id; },
                        [&](std::unique_ptr<cm_event> e) {
                          if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) unanswered.push_back(&cm_id::of(e->id));
                        });
  for (cm_id* fresh : unanswered) delete fresh;  // rejects them
  if (id.event != nullptr) rdma_ack_cm_event(id.event);
  ::pthread_mutex_lock(&id.acknowledged_mutex);
  while (id.acks != id.taken) ::pthread_cond_wait(&id.acknowledged, &id.acknowledged_mutex);
  ::pthread_mutex_unlock(&id.acknowledged_mutex);
  if (id.sync != 0) rdma_destroy_event_channel(id.channel);
  delete &id;
  return 0;
}

int rdma_bind_addr(rdma_cm_id* handle, sockaddr* address) {
  if (handle == nullptr || address == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!is_internet(address)) return fail_with(EAFNOSUPPORT);
  if (id.bound) return fail_with(EINVAL);
  if (!is_stream(id)) return fail_with(EPROTONOSUPPORT);
  device* where = nullptr;
  if (!is_wildcard(*address)) {
    where = device_with(gid_of(address));
    if (where == nullptr) return fail_with(ENODEV);
  }
  // Holds the port until rdma_listen() or rdma_connect() takes it.
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address->sa_family == AF_INET6 && id.v6_only) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  socklen_t size = sizeof id.route.addr.src_storage;
  if (::bind(fd, address, size_of(*address)) != 0 || ::getsockname(fd, &id.route.addr.src_addr, &size) != 0) {
    const int error = errno;
    ::close(fd);
    return fail_with(error);
  }
  // Peers may be told of a port that the system chose before rdma_listen() is called: they wait in the backlog.
  if (port_of(*address) == 0) ::listen(fd, SOMAXCONN);
  id.reservation = fd;
  id.bound = true;
  id.bind_to(where);
  return 0;
}

int rdma_resolve_addr(rdma_cm_id* handle, sockaddr* source, sockaddr* destination, int) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!is_internet(destination)) return fail_with(EAFNOSUPPORT);
  if (id.resolved || id.listener_key != 0) return fail_with(EINVAL);
  if (!is_stream(id)) return fail_with(EPROTONOSUPPORT);
  if (source != nullptr && is_internet(source) && !id.bound && (port_of(*source) != 0 || !is_wildcard(*source))) {
    if (rdma_bind_addr(handle, source) != 0) return -1;
  }
  auto& address = id.route.addr;
  std::memcpy(&address.dst_storage, destination, size_of(*destination));
  if (!id.bound) address.src_storage = {};
  if (!find_source(address.src_storage, address.dst_storage)) return -1;
  device* const where = device_with(gid_of(&address.src_addr));
  if (where == nullptr) {
    id.tell(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  } else {
    id.bind_to(where);
    id.bound = id.resolved = true;
    id.tell(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  return complete(id);
}

int rdma_resolve_route(rdma_cm_id* handle, int) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (!id.resolved) return fail_with(EINVAL);
  id.tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return complete(id);
}

int rdma_set_option(rdma_cm_id* handle, int level, int name, void* value, std::size_t size) {
  if (handle == nullptr || value == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  if (level != RDMA_OPTION_ID) return fail_with(ENOSYS);
  switch (name) {
    case RDMA_OPTION_ID_TOS:
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return size == sizeof(std::uint8_t) ? 0 : fail_with(EINVAL);
    case RDMA_OPTION_ID_REUSEADDR:
      return size == sizeof(int) ? 0 : fail_with(EINVAL);  // it always is
    case RDMA_OPTION_ID_AFONLY:
      if (size != sizeof(int) || id.bound) return fail_with(EINVAL);
      id.v6_only = *static_cast<int*>(value) != 0;
      return 0;
    default:
      return fail_with(ENOSYS);
  }
}

int rdma_migrate_id(rdma_cm_id* handle, rdma_event_channel* channel) {
  if (handle == nullptr) return fail_with(EINVAL);
  cm_id& id = cm_id::of(handle);
  const bool sync = channel == nullptr;
  if (id.sync != 0 && !sync) {
    if (id.event != nullptr) {
      rdma_ack_cm_event(id.event);
      id.event = nullptr;
    }
  }
  if (sync) {
    channel = rdma_create_event_channel();
    if (channel == nullptr) return -1;
  }
  rdma_event_channel* const before = id.channel;
  {
    const std::lock_guard lock(id.home->mutex());
    cm_channel::of(before).events.remove_if(
        [&](const std::unique_ptr<cm_event>& e) { return e->counted == &id; },
        [&](std::unique_ptr<cm_event> e) { cm_channel::of(channel).events.put(std::move(e)); });
    id.channel = channel;
  }
  if (id.sync != 0) rdma_destroy_event_channel(before);
  id.sync = sync ? 1 : 0;
  return 0;
}

ibv_context** rdma_get_devices(int* number) {
  const auto& all = devices();
  auto** const list = static_cast<ibv_context**>(std::calloc(all.size() + 1, sizeof(void*)));
  std::size_t n = 0;
  if (list != nullptr) {
    for (device* d : all) {
      if (ibv_context* const context = shared_context(*d)) list[n++] = context;
    }
  }
  if (number != nullptr) *number = static_cast<int>(n);
  if (n == 0) {
    std::free(list);
    errno = ENODEV;
    return nullptr;
  }
  return list;
}

void rdma_free_devices(ibv_context** list) { std::free(list); }

}  // extern "C"
