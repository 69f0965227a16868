// Part of iwarp-copy.
// A file that gets its name only when it is whole: a temporary file without a name in the same folder (or, on file
// systems that know none, with a hidden one), removed unless commit() succeeds.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: the file system.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "tools/copy/file_tree.hpp"

namespace iwarp::tools::copy {

class pending_file {
 public:
  /// Makes the temporary file with `size` octets that are sure to have room. An existing `where.name` must be a regular
  /// file. Errors: errno (ENOSPC, EACCES, ...), not_a_regular_file.
  static result<pending_file> create(located where, std::uint64_t size);
  pending_file(pending_file&&) noexcept = default;
  pending_file& operator=(pending_file&&) = delete;
  ~pending_file();

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  /// Writes everything to the disk, then puts the file under its name, in place of one that is there.
  result<> commit();

 private:
  pending_file(located where, file_descriptor file, std::string temporary) noexcept
      : where_(std::move(where)), file_(std::move(file)), temporary_(std::move(temporary)) {}

  located where_;
  file_descriptor file_;
  std::string temporary_;  // the name it has now; empty: none
};

}  // namespace iwarp::tools::copy
