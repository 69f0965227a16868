// Part of the interop matrix.
// What the driver of the matrix and its two ends say to each other: plain values, as JSON on the control connection.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace iwarp::interop {

struct queue_options {
  std::uint32_t sends = 160;
  std::uint32_t receives = 160;
  std::uint32_t sges = 6;
  std::uint32_t inline_octets = 64;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(queue_options, sends, receives, sges, inline_octets)

/// What one side asks for when a connection is made. siw's users can choose private data and read depths alone.
struct connection_wishes {
  std::string private_data = {};  // octets
  std::uint16_t ird = 16;
  std::uint16_t ord = 16;
  bool crc = true;
  bool markers = false;
  int revision = 2;
  bool terminate_without_receive = false;  // no_receive::terminate instead of hold
};

/// Private data is arbitrary octets, JSON strings are UTF-8: in hexadecimal on the way.
std::string to_hex(const std::string& octets);
std::string from_hex(const std::string& hex);

inline void to_json(nlohmann::json& out, const connection_wishes& w) {
  out = {{"private_data", to_hex(w.private_data)},
         {"ird", w.ird},
         {"ord", w.ord},
         {"crc", w.crc},
         {"markers", w.markers},
         {"revision", w.revision},
         {"terminate_without_receive", w.terminate_without_receive}};
}
inline void from_json(const nlohmann::json& in, connection_wishes& w) {
  w.private_data = from_hex(in.at("private_data"));
  in.at("ird").get_to(w.ird);
  in.at("ord").get_to(w.ord);
  in.at("crc").get_to(w.crc);
  in.at("markers").get_to(w.markers);
  in.at("revision").get_to(w.revision);
  in.at("terminate_without_receive").get_to(w.terminate_without_receive);
}

/// Where the octets of `count` messages of `size` octets lie: message i begins at octet `at + i * stride` of a region,
/// in `pieces` elements of growing length with a gap behind each. 0 pieces: no element, for size 0.
struct layout {
  std::uint32_t region = 0;
  std::uint64_t at = 0;
  std::uint64_t stride = 0;
  std::uint32_t count = 1;
  std::uint32_t size = 0;
  std::uint32_t pieces = 1;
  std::uint32_t key = 0;  // instead of the region's, when not 0
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(layout, region, at, stride, count, size, pieces, key)

enum class operation { send, send_invalidate, write, read, local_invalidate };
NLOHMANN_JSON_SERIALIZE_ENUM(operation, {{operation::send, "send"},
                                         {operation::send_invalidate, "send_invalidate"},
                                         {operation::write, "write"},
                                         {operation::read, "read"},
                                         {operation::local_invalidate, "local_invalidate"}})

/// One request per message of the layout, with ids first_id, first_id + 1, ...
struct work {
  operation op = operation::send;
  std::uint64_t first_id = 0;
  bool solicited = false;
  bool fence = false;
  bool inline_data = false;
  layout local = {};
  std::uint32_t remote_key = 0;
  std::uint64_t remote_at = 0;
  std::uint64_t remote_stride = 0;
  std::uint32_t invalidate = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(work, op, first_id, solicited, fence, inline_data, local, remote_key,
                                                remote_at, remote_stride, invalidate)

struct region {
  std::uint32_t index = 0;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(region, index, key, address, length)

/// `status` in the words of rdmap::wr_status, whatever the end's own library calls it.
struct completion {
  std::uint64_t id = 0;
  std::string status = {};
  std::string kind = {};
  std::uint32_t length = 0;
  bool solicited = false;         // our stack alone tells
  std::uint32_t invalidated = 0;  // likewise
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(completion, id, status, kind, length, solicited, invalidated)

/// A connection's event in the words of verbs::event_kind; "none" when none came in time. Terminates as
/// layer/type/code, empty without; our stack alone tells of them.
struct event {
  std::string kind = "none";
  std::string reason = {};  // our stack: the message of the error code; siw: status, when not 0
  std::string text = {};
  std::string private_data = {};  // hexadecimal
  int ird = -1;
  int ord = -1;
  bool crc = false;
  int revision = 0;
  std::string sent = {};
  std::string got = {};
  std::string got_swapped = {};  // the other reading, where the control word looks like siw's
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(event, kind, reason, text, private_data, ird, ord, crc, revision, sent,
                                                got, got_swapped)

struct about {
  std::string provider = {};  // "iwarp" or "siw"
  std::uint32_t inline_octets = 0;
  std::uint32_t sges = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(about, provider, inline_octets, sges)

}  // namespace iwarp::interop
