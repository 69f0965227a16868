// Part of iwarp-dump.
// --replay: plays the initiator of a captured stream against a live peer, and compares what comes back. FPDUs are
// framed as the live start-up agrees; each waits until the peer has answered as much as it had in the capture. The live
// conversation is analysed as it happens, as if it were a capture. Threading: not thread-safe; one caller at a time.
// Time: a limit for each wait.  I/O: a TCP connection.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tcp_glue/endpoint.hpp"
#include "tools/dump/events.hpp"
#include "tools/dump/replay_script.hpp"

namespace iwarp::dump {

struct replay_options {
  tcp_glue::host_port where;
  std::chrono::milliseconds patience{5000};  // for what the capture says must come
};

/// Plays; tells `out` what is said live. Returns the differences, a line each, none when the peer did as captured.
/// Throws tools::failure: nobody answers at the address, the script cannot be played.
std::vector<std::string> replay(const replay_script& script, const replay_options& options, event_sink& out);

}  // namespace iwarp::dump
