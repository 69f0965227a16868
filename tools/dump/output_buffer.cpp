#include "tools/dump/output_buffer.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/common/failure.hpp"

namespace iwarp::dump {

void output_buffer::flush() {
  const char* data = text_.data();
  std::size_t left = text_.size();
  while (left != 0) {
    const ssize_t n = ::write(fd_, data, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      text_.clear();
      throw tools::failure(fmt::format("cannot write the output: {}", std::strerror(error)));
    }
    data += n;
    left -= static_cast<std::size_t>(n);
  }
  text_.clear();
}

void append_hex(fmt::memory_buffer& out, const std::byte* data, std::size_t size) {
  static constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i != size; ++i) {
    const auto v = std::to_integer<unsigned>(data[i]);
    out.push_back(digits[v >> 4]);
    out.push_back(digits[v & 15]);
  }
}

}  // namespace iwarp::dump
