// Public API.
// Errors of DDP, category "iwarp.ddp" (RFC 5041 s7.2). Their wire codes are a mapping in rdmap/terminate.hpp.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <system_error>

namespace iwarp::ddp {

enum class errc {
  local_catastrophic = 1,     ///< 1/0/00
  segment_too_short,          ///< ULPDU shorter than its header: 1/0/00 (protocol choice; VERBS 0x1000)
  tagged_invalid_stag,        ///< 1/1/00
  tagged_base_or_bounds,      ///< 1/1/01
  tagged_not_associated,      ///< STag of another PD or stream: 1/1/02
  tagged_no_access,           ///< the STag lacks the right: 1/1/02 as VERBS has it
  tagged_offset_wrap,         ///< TO + length wraps 2^64: 1/1/03
  tagged_bad_version,         ///< 1/1/04
  untagged_invalid_queue,     ///< 1/2/01
  untagged_no_buffer,         ///< 1/2/02
  untagged_msn_out_of_range,  ///< 1/2/03
  untagged_invalid_offset,    ///< 1/2/04
  untagged_too_long,          ///< message longer than its buffer: 1/2/05
  untagged_bad_version,       ///< 1/2/06
};

const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::ddp

template <>
struct std::is_error_code_enum<iwarp::ddp::errc> : std::true_type {};
