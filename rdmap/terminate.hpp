// Internal to rdmap; verbs shows terminate_message to its users.
// The Terminate message (RFC 5040 s4.8) and the one table from every error of this stack to its wire code.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "ddp/error.hpp"
#include "ddp/header.hpp"
#include "mpa/error.hpp"
#include "rdmap/error.hpp"
#include "rdmap/read_request.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace iwarp::rdmap {

/// Layer | error type | error code.
struct term_code {
  std::uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 LLP (MPA)
  std::uint8_t type = 0;
  std::uint8_t code = 0;
  bool operator==(const term_code&) const = default;
};

/// Which headers of the offending segment a Terminate for this error carries (RFC 5040 figure 10, RFC 7306 s8).
enum class term_headers : std::uint8_t { none, ddp, ddp_and_read_request };

struct term_entry {
  term_code code;
  term_headers headers = term_headers::none;
  bool operator==(const term_entry&) const = default;
};

/// The wire code of each error; nothing where no Terminate may be sent (TCP lost, start-up frames, a Terminate
/// received). Switches without default: a new error does not compile until it is mapped.
[[nodiscard]] std::optional<term_entry> terminate_for(mpa::errc e) noexcept;
[[nodiscard]] std::optional<term_entry> terminate_for(ddp::errc e) noexcept;
[[nodiscard]] std::optional<term_entry> terminate_for(errc e) noexcept;
/// By category; an error of any other category is a local one: 0/0/00 without headers.
[[nodiscard]] std::optional<term_entry> terminate_for(std::error_code e) noexcept;

inline constexpr std::size_t term_control_size = 4;
/// Control word, DDP segment length, the longer DDP header, a Read Request header.
inline constexpr std::size_t max_terminate_size = term_control_size + 2 + ddp::untagged_header_size + read_request_size;

/// What follows the untagged header of a Terminate.
struct terminate_message {
  term_code code;
  /// M: the DDP segment length is valid. D (a DDP header is there) is ddp_header_size != 0. R: read_request has a
  /// value.
  bool segment_length_valid = false;
  std::uint16_t segment_length = 0;
  std::array<std::byte, ddp::untagged_header_size> ddp_header{};  // as received by the sender of the Terminate
  std::size_t ddp_header_size = 0;                                // 0, 14 or 18
  std::optional<read_request> request;
  /// siw lays the control word out in reverse: nibbles swapped, M D R at the other end (protocol.md 6.7). Set by
  /// parse() when the octets look so; `code` then still holds the RFC reading and this the other one, and the headers
  /// are read as siw means them.
  std::optional<term_code> swapped_reading;
  bool operator==(const terminate_message&) const = default;

  /// Ignores reserved bits and tolerates every M/D/R combination and truncated contents: headers that are cut short are
  /// left out (RDMAP-49). Never fails for in.size() >= 4. Error: rdmap unspecified when shorter.
  static result<terminate_message> parse(const_bytes in) noexcept;
  /// Returns the octets used.
  std::size_t emit(std::span<std::byte, max_terminate_size> out) const noexcept;
};

/// The words of the tables of RFC 5040, 5041, 5044, 6581 for a code: "DDP untagged buffer: no buffer (1/2/02)".
[[nodiscard]] std::string describe(term_code code);

}  // namespace iwarp::rdmap
