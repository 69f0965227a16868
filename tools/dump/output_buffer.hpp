// Part of iwarp-dump.
// Lines on their way to a file descriptor, in large writes.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: writes to the descriptor.
#pragma once

#include <fmt/format.h>

namespace iwarp::dump {

class output_buffer {
 public:
  explicit output_buffer(int fd) noexcept : fd_(fd) {}

  /// Where to append, by fmt::format_to(std::back_inserter(text()), ...).
  [[nodiscard]] fmt::memory_buffer& text() noexcept { return text_; }
  /// Call at the end of a line. `at_once`: somebody watches as the packets come.
  /// Throws tools::failure when the descriptor cannot be written.
  void end_line() {
    text_.push_back('\n');
    if (text_.size() >= block_size || at_once) flush();
  }
  void flush();
  bool at_once = false;

 private:
  static constexpr std::size_t block_size = 64 * 1024;
  int fd_;
  fmt::memory_buffer text_;
};

/// Two hexadecimal digits for each octet.
void append_hex(fmt::memory_buffer& out, const std::byte* data, std::size_t size);

}  // namespace iwarp::dump
