// Part of iwarp-dump.
// The files of tools/dump/html, put into the program when it is built (html/embed.cmake).
// Threading: pure function.  Time: none.  I/O: none.
#pragma once

#include <string_view>

namespace iwarp::dump {

/// `name`: a path below tools/dump/html, as in embed.cmake; nothing for others.
[[nodiscard]] std::string_view page_source(std::string_view name);

}  // namespace iwarp::dump
