#include "tools/dump/startup_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace iwarp::dump {
namespace {

constexpr std::string_view key_front = "MPA ID Re";
constexpr std::string_view key_back = " Frame";

constexpr std::uint8_t reserved_bits(std::uint8_t revision) noexcept { return revision >= 2 ? 0x0F : 0x1F; }

bool any(const mpa::rtr_set& s) noexcept { return s.any(); }

std::string depth(std::uint16_t value) {
  return value == mpa::depth_not_negotiated ? "not negotiated" : std::to_string(value);
}

}  // namespace

key_place find_key(const_bytes octets) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(octets.data()), octets.size());
  // memmem beats string_view::find by far on long runs.
  for (std::size_t from = 0; from + startup_key_size <= text.size();) {
    const void* hit = memmem(text.data() + from, text.size() - from, key_front.data(), key_front.size());
    if (!hit) break;
    const auto at = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    const std::string_view rest = text.substr(at + key_front.size());
    if (rest.size() >= 1 + key_back.size() && (rest[0] == 'q' || rest[0] == 'p') &&
        rest.substr(1).starts_with(key_back)) {
      return {.at = at, .kind = rest[0] == 'q' ? mpa::frame_kind::request : mpa::frame_kind::reply};
    }
    from = at + 1;
  }
  return {};
}

std::size_t startup_size(const_bytes fixed) noexcept {
  const auto length = load_be<std::uint16_t>(fixed.subspan<18, 2>());
  return mpa::startup_fixed_size + length;
}

startup_fields parse_startup(const_bytes octets) {
  startup_fields f;
  f.kind = std::to_integer<char>(octets[9]) == 'q' ? mpa::frame_kind::request : mpa::frame_kind::reply;
  f.flags = std::to_integer<std::uint8_t>(octets[16]);
  f.revision = std::to_integer<std::uint8_t>(octets[17]);
  f.private_data_length = load_be<std::uint16_t>(octets.subspan<18, 2>());
  f.wire.assign(octets.begin(), octets.end());
  const_bytes data = octets.subspan(mpa::startup_fixed_size);
  // Under revision 1 the bit is a reserved one, and there is no enhanced data.
  if (f.enhanced_bit() && f.revision >= 2 && data.size() >= mpa::enhanced_data_size) {
    f.enhanced = mpa::enhanced_data::parse(data.first<mpa::enhanced_data_size>());
    data = data.subspan(mpa::enhanced_data_size);
  }
  f.private_data.assign(data.begin(), data.end());
  return f;
}

std::vector<finding> check_frame(const startup_fields& f) {
  std::vector<finding> found;
  const bool request = f.kind == mpa::frame_kind::request;
  if (f.revision == 0 || f.revision > 2) {
    found.push_back({"MPA-55", fmt::format("MPA revision {}, which is neither 1 nor 2", f.revision)});
  }
  if (request && f.rejected()) found.push_back({"MPA-52", "R is set in a Request"});
  if (const unsigned reserved = f.flags & reserved_bits(f.revision); reserved != 0) {
    if (f.revision < 2 && (reserved & 0x10) != 0) {
      found.push_back({"MPA-82", "S is set, which revision 1 does not have"});
    } else {
      found.push_back({"MPA-54", fmt::format("reserved flag bits 0x{:02x} are not 0", reserved)});
    }
  }
  if (f.private_data_length > mpa::max_private_data) {
    found.push_back({"MPA-57", fmt::format("PD_Length is {}, above 512", f.private_data_length)});
  }
  if (f.revision >= 2 && f.enhanced_bit() && !f.enhanced) {
    found.push_back({"MPA-84", fmt::format("S is set and PD_Length is {}, less than the 4 octets of IRD and ORD",
                                           f.private_data_length)});
  }
  if (f.enhanced && !f.enhanced->peer_to_peer && any(f.enhanced->rtr)) {
    found.push_back({"MPA-103", "RTR types are flagged without A, the peer-to-peer model"});
  }
  if (f.enhanced && f.enhanced->peer_to_peer && !any(f.enhanced->rtr)) {
    found.push_back({request ? "MPA-99" : "MPA-101", "the peer-to-peer model without any RTR type"});
  }
  return found;
}

std::vector<finding> check_pair(const startup_fields& request, const startup_fields& reply) {
  std::vector<finding> found;
  if (request.enhanced && !reply.enhanced_bit()) {
    found.push_back({"MPA-86", "an unenhanced Reply to an enhanced Request"});
  }
  if (!request.enhanced && reply.enhanced) found.push_back({"MPA-87", "an enhanced Reply to an unenhanced Request"});
  if (reply.revision > request.revision) {
    found.push_back({"MPA-55", fmt::format("a Reply of revision {} to a Request of revision {}", reply.revision,
                                           request.revision)});
  }
  if (!request.enhanced || !reply.enhanced) return found;
  const mpa::enhanced_data& asked = *request.enhanced;
  const mpa::enhanced_data& given = *reply.enhanced;
  if (asked.peer_to_peer != given.peer_to_peer) {
    found.push_back(
        {"MPA-100", fmt::format("the Request has A={:d}, the Reply A={:d}", asked.peer_to_peer, given.peer_to_peer)});
  }
  if (reply.rejected()) return found;  // IRD and ORD are then what the responder would have needed
  const auto unsaid = mpa::depth_not_negotiated;
  if (asked.ord == unsaid && given.ird != unsaid) {
    found.push_back({"MPA-95", fmt::format("the Request's ORD is 0x3FFF, the Reply's IRD {}", given.ird)});
  }
  if (asked.ird == unsaid && given.ord != unsaid) {
    found.push_back({"MPA-96", fmt::format("the Request's IRD is 0x3FFF, the Reply's ORD {}", given.ord)});
  }
  if (asked.ird != unsaid && given.ord != unsaid && given.ord > asked.ird) {
    found.push_back({"MPA-90", fmt::format("the responder's ORD is {}, the initiator's IRD {}", depth(given.ord),
                                           depth(asked.ird))});
  }
  return found;
}

agreement agree(const startup_fields& request, const startup_fields& reply) {
  agreement a;
  a.revision = std::min(request.revision, reply.revision);
  a.crc = request.crc() || reply.crc();
  a.markers_from_initiator = reply.markers();
  a.markers_from_responder = request.markers();
  if (request.enhanced && reply.enhanced) {
    const auto unsaid = mpa::depth_not_negotiated;
    if (reply.enhanced->ird != unsaid) a.initiator_reads = reply.enhanced->ird;
    if (reply.enhanced->ord != unsaid) a.responder_reads = reply.enhanced->ord;
    a.peer_to_peer = reply.enhanced->peer_to_peer;
    if (a.peer_to_peer) a.rtr = reply.enhanced->rtr;
  }
  return a;
}

}  // namespace iwarp::dump
