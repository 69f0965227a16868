// Public API.
// result<T>: a value or a std::error_code, for everything that may fail on a peer's or a user's account.
// An alias of tl::expected, whose interface is that of C++23's std::expected.
// Threading: a value type.  Time: none.  I/O: none.
#pragma once

#include <tl/expected.hpp>

#include <system_error>
#include <type_traits>
#include <utility>

namespace iwarp {

template <class T = void>
using result = tl::expected<T, std::error_code>;

/// Turns an error code, or an enumerator of an error code enum, into the failed state of any result<T>.
[[nodiscard]] inline tl::unexpected<std::error_code> fail(std::error_code ec) noexcept {
  return tl::unexpected<std::error_code>(ec);
}
template <class E>
requires std::is_error_code_enum_v<E>
[[nodiscard]] inline tl::unexpected<std::error_code> fail(E e) noexcept {
  return tl::unexpected<std::error_code>(make_error_code(e));
}

}  // namespace iwarp

#define IWARP_TRY_CONCAT_(a, b) a##b
#define IWARP_TRY_CONCAT(a, b) IWARP_TRY_CONCAT_(a, b)
#define IWARP_TRY_IMPL(tmp, declaration, expression) \
  auto tmp = (expression);                           \
  if (!tmp) return ::iwarp::fail(tmp.error());       \
  declaration = *std::move(tmp)

/// `IWARP_TRY(auto x, expression)`: x becomes the value of the result<T>, or the enclosing function returns its error.
#define IWARP_TRY(declaration, expression) \
  IWARP_TRY_IMPL(IWARP_TRY_CONCAT(iwarp_try_, __LINE__), declaration, expression)

/// `IWARP_CHECK(expression)`: the enclosing function returns the error of a failed result<void>.
#define IWARP_CHECK(expression)                                                                      \
  do {                                                                                               \
    if (auto iwarp_check_ = (expression); !iwarp_check_) return ::iwarp::fail(iwarp_check_.error()); \
  } while (false)
