// Part of iwarp-copy.
// A stretch of a file as memory, safe against others who shorten the file meanwhile: where the kernel would kill the
// process with SIGBUS, zeros appear instead and damaged() tells.
// Threading: a window belongs to one thread; its memory may be touched by any.  Time: none.  I/O: mmap, a SIGBUS
// handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace iwarp::tools::copy {

/// Installs the handler of SIGBUS, and ignores SIGXFSZ. Call once, before the first window.
void guard_mapped_files();

class mapped_window {
 public:
  mapped_window() = default;  ///< no window
  /// `offset` is a multiple of window_size; `length` is above 0; the file is that long. Errors: errno of mmap(2);
  /// std::errc::too_many_files_open when too many windows are mapped in this process.
  static result<mapped_window> map(int descriptor, std::uint64_t offset, std::size_t length, bool writable);
  mapped_window(mapped_window&& other) noexcept;
  mapped_window& operator=(mapped_window&& other) noexcept;
  ~mapped_window();

  [[nodiscard]] mutable_bytes octets() const noexcept { return octets_; }
  /// Some of it was not there when it was touched.
  [[nodiscard]] bool damaged() const noexcept;

 private:
  mapped_window(mutable_bytes octets, std::size_t slot) noexcept : octets_(octets), slot_(slot) {}

  mutable_bytes octets_;
  std::size_t slot_ = 0;
};

}  // namespace iwarp::tools::copy
