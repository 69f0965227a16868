// Part of the interop matrix.
// Cells and what became of them: one JSON line each on stdout.
// Threading: one thread.  Time: steady clock.  I/O: stdout.
#pragma once

#include <functional>
#include <optional>
#include <regex>
#include <string>

#include "tests/interop/matrix/end.hpp"

namespace iwarp::interop {

/// One statement about two ends. All of it together is its name, unique in the matrix.
struct cell {
  std::string group;      // "transfer", "errors", ...
  std::string op;         // what is done
  std::string direction;  // "iwarp->siw": from who acts to who is acted on
  std::string crc = "on";
  std::string connector = {};  // who connected to whom; empty where the direction says it
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> sges = {};
  std::optional<std::uint32_t> depth = {};
  std::string expected = "works";

  [[nodiscard]] std::string name() const;
};

/// The peer's library cannot do it: a reason, not a failure.
class skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class report {
 public:
  /// `only`: cells whose name matches; `list`: names them, runs none.
  report(const std::string& only, bool list) : only_(only), list_(list) {}

  [[nodiscard]] bool wants(const cell& which) const { return std::regex_search(which.name(), only_); }
  /// Runs `body` unless it is not wanted; its result is the note. A failure or skipped that it throws is the result.
  /// False when it failed: the connection may be in any state.
  bool run(const cell& which, const std::function<std::string()>& body);
  [[nodiscard]] bool lists() const noexcept { return list_; }
  /// Prints the summary; the exit code.
  int finish();

 private:
  std::regex only_;
  bool list_;
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace iwarp::interop
