// Part of the programs.
// How a program fails: an exception that becomes one line on stderr and the exit code. Thrown on the program's own
// threads only, never through the stack.
// Threading: free functions.  Time: none.  I/O: stderr.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.hpp"

namespace iwarp::tools {

/// What went wrong, in words that a user understands, without the program's name and without a newline.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// SIGINT or SIGTERM came.
class interrupted : public failure {
 public:
  interrupted() : failure("interrupted") {}
};

/// The peer ended the connection gracefully.
class peer_closed : public failure {
 public:
  using failure::failure;
};

/// The message of an error code as the end of a line: no capital first letter.
std::string describe(std::error_code error);

/// `text` with '?' for every octet that is not printable ASCII or UTF-8: what a peer sent reaches no terminal raw.
std::string printable(std::string_view text);

/// The value, or a failure "WHAT: reason".
template <class T>
T require(result<T> value, std::string_view what) {
  if (!value) throw failure(std::string(what) + ": " + describe(value.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(value);
}

/// Prints "PROGRAM: text" on stderr as one line, in one write.
void complain(std::string_view text);

/// Runs `body`, whose result is the exit code; a failure is printed and gives 1. `program` is named in every line.
int run_program(const char* program, const std::function<int()>& body);

}  // namespace iwarp::tools
