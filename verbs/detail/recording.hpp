// Internal to verbs.
// The capture file that a context records its connections to, as context_options::record_to or IWARP_PCAP asks.
// Threading: any thread.  Time: none.  I/O: creates the file.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "tcp_glue/recording_file.hpp"

namespace iwarp::verbs::detail {

/// `asked`, else the environment's: that file is made once for all contexts of the process. Null: neither asks.
/// Errors: recording_failed.
result<std::shared_ptr<tcp_glue::recording_file>> open_recording(const std::string& asked);

}  // namespace iwarp::verbs::detail
