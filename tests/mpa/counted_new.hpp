// Internal to the tests of mpa.
// A program that links counted_new.cpp counts its calls of operator new.
// Threading: one thread.  Time: none.  I/O: none.
#pragma once

#include <cstddef>

namespace iwarp::mpa::test {

/// Calls of operator new in this program so far.
[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace iwarp::mpa::test
