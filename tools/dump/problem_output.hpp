// Part of iwarp-dump.
// Where the parts of a stream's analysis put what they find.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <string>
#include <string_view>

#include "tools/dump/events.hpp"

namespace iwarp::dump {

class analysis_output {
 public:
  virtual void problem(side from, std::uint64_t offset, frame_ref frame, std::string_view rule, std::string text) = 0;
  virtual void message(const message_event& m) = 0;

 protected:
  ~analysis_output() = default;
};

}  // namespace iwarp::dump
