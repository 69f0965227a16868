// Part of iwarp-dump.
// The octets of a file or of standard input as a FILE*, uncompressed on the way: what libpcap wants to read from.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: reads the file.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace iwarp::dump {

class octet_source {
 public:
  /// "-" is standard input. The first octets tell gzip, bzip2, xz and zstd; anything else passes as it is.
  /// Throws tools::failure when it cannot be opened or read.
  explicit octet_source(const std::string& path);
  ~octet_source();

  /// The stream, to be closed by whoever takes it. Call once. This object must outlive it.
  [[nodiscard]] std::FILE* take() noexcept;
  /// Why the compressed data ended too early, or empty.
  [[nodiscard]] const std::string& damage() const noexcept;

  octet_source(const octet_source&) = delete;
  octet_source& operator=(const octet_source&) = delete;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace iwarp::dump
