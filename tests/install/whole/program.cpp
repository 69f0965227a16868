// A user's program outside the tree: it sees installed headers and libraries only.
#include "base/bytes.hpp"
#include "mpa/crc32c.hpp"

#include <cstdio>
#include <span>
#include <string_view>

int main() {
  constexpr std::string_view digits = "123456789";
  const auto crc = iwarp::mpa::crc32c(std::as_bytes(std::span(digits)));
  std::printf("crc32c(%s) = %08x\n", digits.data(), crc);
  return crc == 0xe3069283 ? 0 : 1;
}
