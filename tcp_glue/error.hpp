// Internal to tcp_glue and verbs.
// Errors of reaching a TCP peer that no errno tells, category "iwarp.tcp_glue". What the kernel reports keeps its errno
// in std::system_category().
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <system_error>

namespace iwarp::tcp_glue {

enum class errc {
  bad_address = 1,  ///< text that is neither a host name nor an IPv4 or IPv6 address
  bad_port,         ///< text behind the colon that is not a number from 0 to 65535
  host_not_found,   ///< no address is known for this host name
  resolver_busy,    ///< the name could not be looked up now; asking again later may help
  resolver_failed,  ///< the name cannot be looked up at all
};

const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::tcp_glue

template <>
struct std::is_error_code_enum<iwarp::tcp_glue::errc> : std::true_type {};
