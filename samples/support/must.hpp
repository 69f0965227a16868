// For samples: a result whose error ends the program.
#pragma once

#include <system_error>
#include <utility>

#include "verbs/verbs.hpp"

namespace iwarp {

/// The value of `r`, or an exception whose text says `what` went wrong and why.
template <class T>
T must(result<T> r, const char* what) {
  if (!r) throw std::system_error(r.error(), what);
  if constexpr (!std::is_void_v<T>) return *std::move(r);
}

}  // namespace iwarp
