// Part of iwarp-dump.
// A file that appears under its name when it is complete, and not before: written beside it, renamed at the end.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: writes files.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace iwarp::dump {

class page_file {
 public:
  /// Throws tools::failure, as all calls do: when the folder cannot be written, or `path` is there and no plain file.
  explicit page_file(std::string path);
  /// Nothing is left behind unless commit() returned.
  ~page_file();

  /// Where to append; more() at times keeps it small.
  [[nodiscard]] fmt::memory_buffer& text() noexcept { return text_; }
  void add(std::string_view text) { text_.append(text); }
  void more() {
    if (text_.size() >= block_size) flush();
  }
  void commit();

  page_file(const page_file&) = delete;
  page_file& operator=(const page_file&) = delete;

 private:
  static constexpr std::size_t block_size = 256 * 1024;
  void flush();
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  fmt::memory_buffer text_;
};

}  // namespace iwarp::dump
