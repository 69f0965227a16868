// Part of iwarp-run.
// The file of the program to run: where it is, and whether a library can be loaded before its own.
// Threading: free functions.  Time: none.  I/O: reads the first octets of files.
#pragma once

#include <string>

namespace iwarp::tools {

/// As a shell finds it. Throws tools::failure when there is none that can be run.
[[nodiscard]] std::string find_program(const std::string& name);

/// Throws tools::failure for programs that LD_PRELOAD does not reach: statically linked, set-user-ID, set-group-ID or
/// with capabilities, or of another architecture. Scripts are asked for their interpreter.
void require_preload(const std::string& path);

}  // namespace iwarp::tools
