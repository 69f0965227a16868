// Internal to the drop-in and iwarp-run.
// What the environment says about the drop-in. The table for people is in docs/iwarp-run.md.
// Threading: value types.  Time: none.  I/O: reads the environment.
#pragma once

#include <string>
#include <vector>

#include "verbs/queue_pair.hpp"

namespace iwarp::compat {

struct settings {
  std::vector<std::string> addresses;  ///< IWARP_ADDRESSES: addresses or interfaces to offer; empty: all that are up
  bool crc = true;                     ///< IWARP_CRC=on|off
  bool markers = false;                ///< IWARP_MARKERS=on|off
  std::uint8_t mpa_revision = 2;       ///< IWARP_MPA_REV=1|2
  verbs::no_receive shortage = verbs::no_receive::hold;  ///< IWARP_SHORTAGE=hold|terminate
  unsigned domains = 1;                                  ///< IWARP_DOMAINS=1..64
  std::string problem;  ///< what cannot be understood, in one line; the default is used for it
};

/// Names of the variables, for those who set them.
inline constexpr const char* addresses_variable = "IWARP_ADDRESSES";
inline constexpr const char* crc_variable = "IWARP_CRC";
inline constexpr const char* markers_variable = "IWARP_MARKERS";
inline constexpr const char* revision_variable = "IWARP_MPA_REV";
inline constexpr const char* shortage_variable = "IWARP_SHORTAGE";
inline constexpr const char* domains_variable = "IWARP_DOMAINS";

[[nodiscard]] settings read_settings();

}  // namespace iwarp::compat
