// Internal to rdmap, ddp, mpa; verbs owns the pool, one per progress domain.
// FPDUs framed and not yet taken by TCP, as one gather list: headers, markers, small payloads, PAD and CRC in scratch,
// large payloads by reference. A connection holds one only while it has octets to send.
// Threading: not thread-safe; serialised by the progress domain.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace iwarp::mpa {

class tx_batch {
 public:
  static constexpr std::size_t max_pieces = 1024;  // what one sendmsg takes (IOV_MAX)
  static constexpr std::size_t scratch_size = 48 * 1024;
  /// Payload pieces up to this size are copied next to their header: one longer piece costs the kernel less than two.
  static constexpr std::size_t copy_limit = 512;
  /// Octets of payload that one FPDU copies at most; small pieces beyond go by reference, so that an FPDU of very many
  /// pieces still fits an empty batch. A single small piece is always copied.
  static constexpr std::size_t copy_total = 8 * 1024;
  /// Longest header that fpdu_tx::frame() is given along with payload.
  static constexpr std::size_t max_header = 128;

  tx_batch() noexcept {}  // not defaulted: value-initialisation would zero 64 KiB
  ~tx_batch() { leave_list(); }

  /// True when an FPDU of `ulpdu_size` octets whose payload lies in `payload_pieces` pieces certainly fits, markers or
  /// not. With no payload pieces the whole ULPDU is header, and copied. An empty batch has room for any ULPDU of
  /// 1..750 pieces.
  [[nodiscard]] bool has_room(std::size_t ulpdu_size, std::size_t payload_pieces) const noexcept;

  /// Appends `size` octets that the caller fills; joins the previous piece where that is contiguous.
  mutable_bytes append_space(std::size_t size) noexcept;
  /// Appends octets by copy; joins the previous piece where that is contiguous. Returns where they were put.
  mutable_bytes append_copy(const_bytes octets) noexcept;
  /// Appends octets by reference: they must stay as they are until advanced over.
  void append_reference(const_bytes octets) noexcept;

  /// What is left to send. Valid until the next non-const call.
  [[nodiscard]] std::span<const gather_piece> pieces() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;  ///< octets left to send
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// TCP took `n` octets, n <= size(). An emptied batch starts over with all its room.
  void advance(std::size_t n) noexcept;
  /// Replaces every reference into `region` by a private copy, because the region is about to go away. Allocates.
  void detach(const_bytes region);
  /// Likewise every reference, because the memory behind them is its owner's again. Allocates.
  void detach_all();
  void clear() noexcept;

  tx_batch(const tx_batch&) = delete;  // pieces point into scratch_
  tx_batch& operator=(const tx_batch&) = delete;

 private:
  friend class tx_batch_pool;
  void leave_list() noexcept;
  void detach_piece(gather_piece& piece);
  void push_piece(const void* data, std::size_t size) noexcept;

  tx_batch** lent_link_ = nullptr;  // in the pool's list of those it has lent: what points to this one
  tx_batch* lent_next_ = nullptr;
  std::size_t first_ = 0;  // pieces_[first_, end_) are left to send
  std::size_t end_ = 0;
  std::size_t size_ = 0;  // octets in them
  std::size_t scratch_used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> detached_;  // copies made by detach(), until the batch is empty
  std::array<gather_piece, max_pieces> pieces_;
  std::array<std::byte, scratch_size> scratch_;
};

/// Batches to lend to connections. Keeps a bounded number of spare ones.
class tx_batch_pool {
 public:
  tx_batch_pool() = default;
  ~tx_batch_pool();
  [[nodiscard]] std::unique_ptr<tx_batch> take();  // allocates only when no spare is there
  void give_back(std::unique_ptr<tx_batch> batch) noexcept;
  /// tx_batch::detach() for every batch that is lent: whichever connection of the domain has octets of `region` queued.
  void detach(const_bytes region);

  tx_batch_pool(const tx_batch_pool&) = delete;  // batches point to lent_
  tx_batch_pool& operator=(const tx_batch_pool&) = delete;

 private:
  std::vector<std::unique_ptr<tx_batch>> spare_;
  tx_batch* lent_ = nullptr;  // few: idle connections hold none
};

}  // namespace iwarp::mpa
