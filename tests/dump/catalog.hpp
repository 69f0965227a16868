// Internal to tests/dump.
// Synthetic captures by name, with what is in each.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/dump/synthetic.hpp"
#include "tools/dump/analyser.hpp"

namespace iwarp::dump_test {

struct entry {
  std::string name;
  std::vector<frame> frames{};
  std::string operations{};  // of its messages
  std::uint64_t fpdus = 0;
  std::string rules{};  // of its problems
  std::uint64_t lost = 0;
  std::uint64_t streams = 1;
  int link_type = 1;
  dump::analyser_options options{};

  [[nodiscard]] std::string test_name() const {
    std::string text = name;
    for (char& c : text) {
      if (c == '-') c = '_';
    }
    return text;
  }
};
inline void PrintTo(const entry& e, std::ostream* out) { *out << e.name; }

[[nodiscard]] std::vector<entry> catalog();

}  // namespace iwarp::dump_test
