// Internal to tests.
// Memory between two pages that nobody may touch, with canaries between it and them: an octet too many is a crash, or
// found by intact(). Its own pages can be taken away while threads go on.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: mmap.
#pragma once

#include <cstddef>
#include <utility>

#include "base/bytes.hpp"

namespace iwarp::verbs_test {

class guarded_memory {
 public:
  /// `size` octets that end right in front of the guard page; what is left of the first page are canaries.
  explicit guarded_memory(std::size_t size);
  ~guarded_memory();
  guarded_memory(guarded_memory&& other) noexcept
      : map_(std::exchange(other.map_, nullptr)), map_size_(other.map_size_), bytes_(other.bytes_) {}
  guarded_memory& operator=(guarded_memory&&) = delete;

  [[nodiscard]] mutable_bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  /// The canaries are as they were made.
  [[nodiscard]] bool intact() const noexcept;
  /// From here on any access is a crash.
  void forbid() noexcept;
  void make_read_only() noexcept;
  void allow() noexcept;

 private:
  std::byte* map_ = nullptr;
  std::size_t map_size_ = 0;
  mutable_bytes bytes_;
};

/// Octets that differ from seed to seed and along the way.
void fill(mutable_bytes out, std::uint64_t seed) noexcept;
/// How many octets at the front are those of fill().
[[nodiscard]] std::size_t matching(const_bytes in, std::uint64_t seed) noexcept;
[[nodiscard]] inline bool matches(const_bytes in, std::uint64_t seed) noexcept {
  return matching(in, seed) == in.size();
}
/// Every octet is `value`.
[[nodiscard]] bool all_are(const_bytes in, std::byte value) noexcept;

}  // namespace iwarp::verbs_test
