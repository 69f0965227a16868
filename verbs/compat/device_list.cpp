#include "verbs/compat/device_list.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace iwarp::compat {
namespace {

std::uint32_t mtu_of(const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  const bool known = ::ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0;
  ::close(fd);
  return known ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* octets = address->sa_family == AF_INET
                           ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                           : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  ::inet_ntop(address->sa_family, octets, text, sizeof text);
  return text;
}

}  // namespace

in6_addr gid_of(const sockaddr* address) noexcept {
  in6_addr gid{};
  if (address->sa_family == AF_INET) {
    gid.s6_addr[10] = gid.s6_addr[11] = 0xFF;
    std::memcpy(gid.s6_addr + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    gid = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  return gid;
}

std::vector<local_address> find_addresses(const settings& s, std::vector<std::string>* unknown) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(first, &::freeifaddrs);
  std::vector<local_address> all, loopback;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) continue;
    const in6_addr gid = gid_of(i->ifa_addr);
    if (IN6_IS_ADDR_LINKLOCAL(&gid)) continue;  // means nothing without its interface
    auto& list = (i->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : all;
    list.push_back(
        {.device = {}, .text = text_of(i->ifa_addr), .interface = i->ifa_name, .gid = gid, .mtu = mtu_of(i->ifa_name)});
  }
  if (all.empty() || !s.addresses.empty()) all.insert(all.end(), loopback.begin(), loopback.end());
  if (!s.addresses.empty()) {
    std::vector<local_address> chosen;
    for (const auto& wanted : s.addresses) {
      bool found = false;
      for (const auto& a : all) {
        if (a.text != wanted && a.interface != wanted) continue;
        found = true;
        const bool twice = std::ranges::any_of(chosen, [&](const auto& c) { return c.text == a.text; });
        if (!twice) chosen.push_back(a);
      }
      if (!found && unknown != nullptr) unknown->push_back(wanted);
    }
    all = std::move(chosen);
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].device = "iwarp" + std::to_string(i);
  return all;
}

}  // namespace iwarp::compat
