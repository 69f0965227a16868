// Part of iwarp-copy.
// A progress bar on stderr, only when that is a terminal.
// Threading: not thread-safe; one caller at a time.  Time: the steady clock.  I/O: stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace iwarp::tools::copy {

class progress_bar {
 public:
  progress_bar(std::string name, std::uint64_t total);
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  /// Takes the bar off the terminal.
  ~progress_bar();

  /// `done` octets of the total; draws at most ten times a second.
  void show(std::uint64_t done);

 private:
  std::string name_;
  std::uint64_t total_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace iwarp::tools::copy
