// Internal to tests.
// Octets written as hexadecimal text, and back.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::test_support {

/// The octets of "00174143 0000...". White space may stand between octets. Throws std::invalid_argument for anything
/// else, and for an odd number of digits: a mistake in a test's text, not a result.
[[nodiscard]] inline std::vector<std::byte> from_hex(std::string_view text) {
  const auto digit = [](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
    throw std::invalid_argument(std::string("not a hexadecimal digit: ") + c);
  };
  std::vector<std::byte> octets;
  octets.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
      continue;
    }
    if (i + 1 == text.size()) throw std::invalid_argument("odd number of hexadecimal digits");
    octets.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
    i += 2;
  }
  return octets;
}

/// Lower-case digits without spaces.
[[nodiscard]] inline std::string to_hex(const_bytes octets) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(octets.size() * 2);
  for (const std::byte b : octets) {
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 0xf];
  }
  return text;
}

}  // namespace iwarp::test_support
