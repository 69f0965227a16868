// Part of iwarp-copy.
// Files below one folder, reached so that no name and no symbolic link leads out of it: every component is opened
// relative to the one before it, without following links.
// Threading: every function from any thread.  Time: none.  I/O: the file system.
#pragma once

#include <sys/stat.h>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.hpp"
#include "tools/copy/protocol.hpp"

namespace iwarp::tools::copy {

/// Owns a file descriptor.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  file_descriptor(file_descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~file_descriptor();

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

std::error_code last_error() noexcept;  ///< errno

/// Names that begin so are files in the making; nobody may ask for one.
inline constexpr std::string_view temporary_prefix = ".iwarp-copy-";

struct located {
  file_descriptor folder;
  std::string name;  ///< one component
};

/// "a/b/c" below `root`: opens folder a/b. Errors: std::errc::invalid_argument for a name that is not relative and
/// plain (protocol: bad_name); errno, ELOOP for a symbolic link.
result<located> locate(int root, std::string_view name);

struct opened_file {
  file_descriptor descriptor;
  std::uint64_t size = 0;
};
/// Opens a regular file for reading; does not follow a symbolic link in its last component when `follow` is false, and
/// never waits on a pipe. Errors: errno, not_a_regular_file.
result<opened_file> open_regular(int folder, const std::string& name, bool follow);

/// True when the file is shorter than `size` now: a failure of a copy from it has its reason there.
bool shortened(int descriptor, std::uint64_t size) noexcept;

/// What the server tells its client about an error of the functions above.
status status_of(std::error_code error) noexcept;

}  // namespace iwarp::tools::copy
