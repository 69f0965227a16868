// Internal to rdmap, ddp, mpa; verbs owns one per progress domain.
// Receive memory that many connections share: one staging buffer that every read goes to, and the buffers that hold
// what a read left over of an unfinished FPDU. An idle connection holds none of it.
// Threading: not thread-safe; serialised by the progress domain.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <memory>
#include <vector>

namespace iwarp::mpa {

class rx_memory {
 public:
  /// Octets that one read may bring. Batch size decides the speed of the receive path.
  static constexpr std::size_t read_size = 256 * 1024;
  /// Largest FPDU on the wire: 65535 + length + pad + CRC, and its markers (one per 508 octets, one in front).
  static constexpr std::size_t max_fpdu = 65544 + 4 * 131;
  /// Staging holds a maximum FPDU plus a full read, or a receiver could stall with it full.
  static constexpr std::size_t staging_size = max_fpdu + read_size;
  /// Left-overs up to this size come from a free list of equal buffers, larger ones (a held stream) from the heap.
  static constexpr std::size_t small_carry_size = max_fpdu;

  rx_memory();
  ~rx_memory();

  [[nodiscard]] mutable_bytes staging() noexcept;

  /// A buffer of at least `size` octets (at most staging_size). Allocates only while the free list is empty.
  struct carry {
    std::unique_ptr<std::byte[]> data;
    std::size_t capacity = 0;
  };
  [[nodiscard]] carry take(std::size_t size);
  void give_back(carry&& c) noexcept;

  rx_memory(const rx_memory&) = delete;
  rx_memory& operator=(const rx_memory&) = delete;

 private:
  std::unique_ptr<std::byte[]> staging_;
  std::vector<carry> free_;  // bounded: spare buffers beyond a constant go back to the heap
};

}  // namespace iwarp::mpa
