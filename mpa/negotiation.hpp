// Internal to rdmap, mpa.
// The decisions of MPA start-up: what a Request offers, what a Reply answers, what both sides then use
// (RFC 5044 s7.1.2, RFC 6581 s9). Pure functions; rdmap::stream runs the exchange and its timers.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include "base/result.hpp"
#include "mpa/startup_frame.hpp"

#include <cstdint>
#include <optional>

namespace iwarp::mpa {

/// What one side brings to the start-up.
struct startup_options {
  std::uint8_t revision = 2;      ///< initiator: revision of the Request, 1 or 2; responder: highest it accepts
  bool crc = true;                ///< C: ask for CRC32c. false only on the user's explicit word (RFC 5044 s4.4)
  bool markers = false;           ///< M: ask the peer to insert markers
  std::uint16_t ird = 16;         ///< inbound Reads this side can hold, 0..0x3FFE
  std::uint16_t ord = 16;         ///< outbound Reads this side would like, 0..0x3FFE
  std::uint16_t max_ird = 128;    ///< how far IRD may be raised for the peer's ORD; never lowered below ird
  bool peer_to_peer = false;      ///< initiator: A. The responder follows the Request
  rtr_set rtr{true, true, true};  ///< RTR types this side can send (initiator) or take (responder)
};

enum class rtr_kind : std::uint8_t { none, send, write, read };

/// What holds for the connection once start-up is through.
struct negotiated {
  std::uint8_t revision = 1;
  bool enhanced = false;
  bool crc = true;
  bool rx_markers = false;     ///< the peer inserts markers in what it sends (we asked)
  bool tx_markers = false;     ///< we insert markers (the peer asked)
  std::uint16_t ird = 0;       ///< own, now in force
  std::uint16_t ord = 0;       ///< own, now in force
  std::uint16_t peer_ird = 0;  ///< as the peer stated it; meaningful iff enhanced
  std::uint16_t peer_ord = 0;
  bool peer_to_peer = false;
  rtr_kind rtr = rtr_kind::none;  ///< initiator: which one it must send
  rtr_set rtr_accepted{};         ///< responder: which ones may come
  bool operator==(const negotiated&) const = default;
};

/// The Request. `private_data`: 0..512 octets, 0..508 when enhanced. Revision 2 is always enhanced here, as siw has it;
/// revision 1 never (RFC 6581 s6). Precondition: options and length in range (the verbs boundary checks).
[[nodiscard]] startup_frame make_request(const startup_options& own, const_bytes private_data) noexcept;

/// Responder, ULP accepts: the Reply to `request` and what then holds.
struct accepted {
  startup_frame reply;
  negotiated agreed;
};
[[nodiscard]] accepted accept_request(const startup_options& own, const startup_frame& request,
                                      const_bytes private_data) noexcept;
/// Responder, ULP rejects: R=1, enhanced iff the Request was, with the IRD and ORD this side would have needed.
[[nodiscard]] startup_frame reject_request(const startup_options& own, const startup_frame& request,
                                           const_bytes private_data) noexcept;
/// Responder: may this Request be answered at all? Errors: bad_revision (enhanced Request while own.revision is 1).
[[nodiscard]] result<> check_request(const startup_options& own, const startup_frame& request) noexcept;

/// Initiator: what an accepting Reply means. Errors: not_enhanced, insufficient_ird (send Terminate 2/0/06),
/// no_matching_rtr (2/0/07), bad_revision (a Reply of another revision than 1 or 2).
/// `agreed` is filled as far as framing needs (CRC, markers) in every case, so that a Terminate can be framed.
[[nodiscard]] result<> apply_reply(const startup_options& own, const startup_frame& reply, negotiated& agreed) noexcept;

}  // namespace iwarp::mpa
