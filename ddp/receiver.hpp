// Internal to rdmap, ddp.
// The data sink of DDP (RFC 5041 s5.3, s7): checks each segment, places its payload by the one copy, counts MSN and MO
// per queue, tells the layer above. Segments come in stream order, so MO gaps are errors.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "ddp/upper_layer.hpp"
#include "mpa/ulpdu.hpp"

#include <array>

namespace iwarp::ddp {

class receiver final : public mpa::ulpdu_sink {
 public:
  /// `upper` must outlive this object.
  explicit receiver(upper_layer& upper) noexcept : upper_(upper) {}

  /// One segment, in stream order. Errors: iwarp.ddp, or what the upper layer answered. After an error every later
  /// segment is dropped silently: `taken`, and the upper layer is not called (RFC 5041 s7.1).
  result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override;

  /// MSN that the next message on `queue` must carry (the current message's while one is in progress).
  [[nodiscard]] msn expected(std::uint32_t queue) const noexcept { return queues_[queue].expected; }
  /// For tests of wrap-around: the next message on `queue` carries `next`.
  void set_expected(std::uint32_t queue, msn next) noexcept { queues_[queue].expected = next; }
  /// True while an untagged message on `queue` has begun and not ended.
  [[nodiscard]] bool in_message(std::uint32_t queue) const noexcept { return queues_[queue].open; }

 private:
  struct queue_state {
    msn expected;
    bool open = false;
    std::uint32_t placed = 0;  // octets of the message so far = MO the next segment must carry
    std::size_t piece = 0;     // where in the scatter list the next octet goes
    std::size_t piece_offset = 0;
    untagged_target target;
  };

  result<mpa::ulpdu_answer> on_tagged(const mpa::ulpdu& unit) noexcept;
  result<mpa::ulpdu_answer> on_untagged(const mpa::ulpdu& unit) noexcept;
  /// The `size` payload octets of an untagged segment that passed every check go to the scatter list.
  static void place(const mpa::ulpdu& unit, std::size_t size, queue_state& state) noexcept;

  upper_layer& upper_;
  bool failed_ = false;
  std::array<queue_state, untagged_queues> queues_{};
};

}  // namespace iwarp::ddp
