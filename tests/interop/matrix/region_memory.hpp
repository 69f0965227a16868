// Part of the interop matrix.
// Anonymous memory for one region, on pages of its own.
// Threading: one owner.  Time: none.  I/O: none.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tests/interop/matrix/end.hpp"

namespace iwarp::interop {

class region_memory {
 public:
  explicit region_memory(std::uint64_t length) : length_(length) {
    data_ = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw failure(std::string("mmap: ") + std::strerror(errno));
  }
  region_memory(region_memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), length_(std::exchange(other.length_, 0)) {}
  region_memory& operator=(region_memory&&) = delete;
  ~region_memory() {
    if (data_ != nullptr) ::munmap(data_, length_);
  }
  [[nodiscard]] mutable_bytes octets() const noexcept { return as_mutable_bytes(data_, length_); }

 private:
  void* data_;
  std::uint64_t length_;
};

}  // namespace iwarp::interop
