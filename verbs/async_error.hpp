// Public API.
// Errors as Asio's completion handlers take them. Handlers, futures and co_await of Asio know boost::system::error_code
// alone, the rest of this library std::error_code; these functions go from one to the other without loss.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <boost/system/error_code.hpp>

#include <system_error>

#include "verbs/error.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs {

/// Category "iwarp.completion": the values are those of verbs::status, its message says the same in words.
const std::error_category& status_category() noexcept;
/// A status as an error code; status::success is no error.
[[nodiscard]] inline std::error_code to_error_code(status s) noexcept {
  return {static_cast<int>(s), status_category()};
}

/// The same error for Asio: category name, value, message and generic condition stay. The system's own errors become
/// boost::system's, so that they compare equal to the enumerators of asio::error.
boost::system::error_code to_asio(const std::error_code& error);
/// The way back: gives the very category that to_asio() was given. For comparing with codes of any layer:
/// `to_std(error) == mpa::errc::crc_mismatch`.
std::error_code to_std(const boost::system::error_code& error);

/// `error == errc::queue_full` in a completion handler.
[[nodiscard]] inline bool operator==(const boost::system::error_code& error, errc e) {
  return error && to_std(error) == make_error_code(e);
}

}  // namespace iwarp::verbs

namespace iwarp::rdmap {

/// `error == status::remote_access` in a completion handler. Stands beside the enum, where the compiler looks for it.
[[nodiscard]] inline bool operator==(const boost::system::error_code& error, wr_status s) {
  return verbs::to_std(error) == verbs::to_error_code(s);
}

}  // namespace iwarp::rdmap
