// Part of iwarp-dump.
// Finds an FPDU somewhere in a run of octets: in a capture that begins in the middle of a stream, behind a hole, or
// after framing was lost. A place is believed when a chain of FPDUs from it on shows enough: header fields that fit,
// CRCs that are right, markers that point back, offsets and sequence numbers that continue. Threading: pure functions.
// Time: none.  I/O: none.
#pragma once

#include "tools/dump/framing.hpp"

namespace iwarp::dump {

struct hunt_result {
  enum class outcome : std::uint8_t {
    found,  ///< an FPDU, or its leading marker, is at `at`
    more,   ///< what is at `at` may be one, and nothing in front of it is: more octets will tell
    none,   ///< nothing in front of `at` is one
  };
  outcome what = outcome::none;
  std::size_t at = 0;
  framing how;  // found: what is known now
};

/// Looks through `octets`, whose first has TCP stream offset `offset`, from index `begin` on. `known`: what is certain
/// of the framing. `other_only`: at `begin` itself the framing as known was tried and failed. `at_end`: no more octets
/// will follow, so that `more` is no answer.
[[nodiscard]] hunt_result hunt(const_bytes octets, std::uint64_t offset, std::size_t begin, const framing& known,
                               bool other_only, bool at_end) noexcept;

}  // namespace iwarp::dump
