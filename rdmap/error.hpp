// Public API.
// Errors of RDMAP, category "iwarp.rdmap" (RFC 5040 s4.8). Their wire codes are a mapping in rdmap/terminate.hpp.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <system_error>

namespace iwarp::rdmap {

enum class errc {
  local_catastrophic = 1,     ///< 0/0/00: local failure, e.g. while building an outbound message or by request
  source_invalid_stag,        ///< Read Request: 0/1/00
  source_base_or_bounds,      ///< 0/1/01
  source_no_access,           ///< 0/1/02
  source_not_associated,      ///< 0/1/03
  source_offset_wrap,         ///< 0/1/04
  invalidate_invalid_stag,    ///< Send with Invalidate: 0/1/00
  invalidate_no_access,       ///< 0/1/02
  invalidate_not_associated,  ///< 0/1/03
  cannot_invalidate,          ///< 0/1/09
  bad_version,                ///< RV is not 1: 0/2/05
  unexpected_opcode,          ///< unassigned, or does not fit T, QN or the state: 0/2/06
  stream_catastrophic,        ///< 0/2/07
  message_not_single,         ///< L=0 where the message must be one segment, or a last segment is missing: 0/2/07
  peer_closed_with_work,      ///< FIN while work was outstanding: 0/2/07
  cq_overflow,                ///< a completion queue overflowed: 0/2/07
  device_catastrophic,        ///< 0/2/08
  unspecified,                ///< 0/2/FF
  terminated_by_peer,         ///< the peer sent a Terminate (nothing is sent back)
};

const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::rdmap

template <>
struct std::is_error_code_enum<iwarp::rdmap::errc> : std::true_type {};
