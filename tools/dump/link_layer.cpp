#include "tools/dump/link_layer.hpp"

#include <pcap/pcap.h>

#include <cstdint>

namespace iwarp::dump {
namespace {

constexpr std::size_t ethernet_types_at = 12;  // behind the two addresses
constexpr std::size_t vlan_tag_size = 4;
constexpr std::size_t cooked_size = 16;
constexpr std::size_t cooked2_size = 20;
constexpr std::size_t loopback_size = 4;

constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86DD;
constexpr std::uint16_t type_vlan = 0x8100;          // 802.1Q
constexpr std::uint16_t type_service_vlan = 0x88A8;  // 802.1ad, QinQ
constexpr std::uint16_t type_old_service_vlan = 0x9100;

std::uint16_t word(const_bytes in, std::size_t at) noexcept {
  return load_be<std::uint16_t>(in.subspan(at).first<2>());
}

const_bytes checked(const_bytes packet) noexcept {
  if (packet.empty()) return {};
  const int version = std::to_integer<int>(packet[0]) >> 4;
  return version == 4 || version == 6 ? packet : const_bytes{};
}

/// `at`: of the type field, which VLAN tags may push back.
const_bytes by_type(const_bytes frame, std::size_t at) noexcept {
  for (;; at += vlan_tag_size) {
    if (frame.size() < at + 2) return {};
    switch (word(frame, at)) {
      case type_ipv4:
      case type_ipv6:
        return checked(frame.subspan(at + 2));
      case type_vlan:
      case type_service_vlan:
      case type_old_service_vlan:
        continue;
      default:
        return {};
    }
  }
}

}  // namespace

bool link_type_known(int link_type) noexcept {
  switch (link_type) {
    case DLT_EN10MB:
    case DLT_LINUX_SLL:
    case DLT_LINUX_SLL2:
    case DLT_RAW:
    case 101:  // LINKTYPE_RAW as some writers leave it
    case DLT_IPV4:
    case DLT_IPV6:
    case DLT_NULL:
    case DLT_LOOP:
      return true;
    default:
      return false;
  }
}

std::string link_type_name(int link_type) {
  const char* name = pcap_datalink_val_to_name(link_type);
  return name ? name : std::to_string(link_type);
}

const_bytes ip_packet_of(int link_type, const_bytes frame) noexcept {
  switch (link_type) {
    case DLT_EN10MB:
      return by_type(frame, ethernet_types_at);
    case DLT_LINUX_SLL:
      return by_type(frame, cooked_size - 2);
    case DLT_LINUX_SLL2: {
      if (frame.size() < cooked2_size) return {};
      const std::uint16_t type = word(frame, 0);
      // A tag is behind the header here, which keeps the outer type in front.
      if (type == type_vlan || type == type_service_vlan) return by_type(frame, cooked2_size + 2);
      return type == type_ipv4 || type == type_ipv6 ? checked(frame.subspan(cooked2_size)) : const_bytes{};
    }
    case DLT_NULL:  // the address family in the order of the host that captured: the IP version says enough
    case DLT_LOOP:
      return frame.size() < loopback_size ? const_bytes{} : checked(frame.subspan(loopback_size));
    default:
      return checked(frame);
  }
}

}  // namespace iwarp::dump
