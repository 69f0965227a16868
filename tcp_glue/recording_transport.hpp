// Internal to tcp_glue and verbs.
// A transport that writes what passes through it to a recording_file, and is otherwise the one it wraps.
// Threading: as the wrapped transport and the file.  Time: none.  I/O: theirs.
#pragma once

#include "tcp_glue/recording_file.hpp"
#include "tcp_glue/transport.hpp"

#include <memory>

namespace iwarp::tcp_glue {

enum class opener : std::uint8_t { local, remote };

/// `inner` itself where there is nothing to add: its other end is recorded in this process already, or its addresses
/// are not known any more. `who` opened the connection: that side's SYN comes first.
std::unique_ptr<transport> record_traffic(std::unique_ptr<transport> inner, std::shared_ptr<recording_file> file,
                                          opener who);

}  // namespace iwarp::tcp_glue
