// Public API.
// Errors of MPA, category "iwarp.mpa" (RFC 5044 s8, RFC 6581 s8). Their wire codes are a mapping in
// rdmap/terminate.hpp. Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <system_error>

namespace iwarp::mpa {

enum class errc {
  tcp_lost = 1,        ///< TCP closed, reset or timed out, or FIN inside an FPDU (wire code 1)
  crc_mismatch,        ///< received and computed CRC differ (2)
  marker_mismatch,     ///< marker and ULPDU_Length disagree about where the FPDU starts (3)
  bad_key,             ///< not an MPA start-up frame: the peer does not speak iWARP (4)
  same_role,           ///< the peer sent the key of our own role: both are initiators, or both responders (4)
  bad_revision,        ///< MPA revision this stack cannot speak (4)
  bad_private_data,    ///< PD_Length over 512, or below 4 with enhanced data (4)
  unexpected_octets,   ///< octets behind a Request whose Reply was not sent yet (4)
  not_enhanced,        ///< unenhanced Reply to an enhanced Request (4)
  startup_cut_short,   ///< TCP ended inside a start-up frame (4)
  startup_timeout,     ///< the peer's start-up frame did not arrive in time
  first_fpdu_timeout,  ///< the initiator sent no FPDU in time
  fpdu_timeout,        ///< an FPDU was begun and not finished in time
  rejected,            ///< the peer's ULP rejected the connection
  markers_refused,     ///< the peer rejected a Request that asked for markers
  local_catastrophic,  ///< other local error in enhanced set-up (5)
  insufficient_ird,    ///< our IRD cannot match the responder's ORD (6)
  no_matching_rtr,     ///< no RTR type in common (7)
};

const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::mpa

template <>
struct std::is_error_code_enum<iwarp::mpa::errc> : std::true_type {};
