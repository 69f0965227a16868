#include "ddp/receiver.hpp"

#include "ddp/error.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace iwarp::ddp {
namespace {

// RFC 5041 s5.2: a message is shorter than 2^32 octets, however large its buffer is.
constexpr std::uint64_t max_message = std::numeric_limits<std::uint32_t>::max();

}  // namespace

result<mpa::ulpdu_answer> receiver::on_ulpdu(const mpa::ulpdu& unit) noexcept {
  // RFC 5041 s7.1: after an error nothing is placed any more; later segments are dropped silently.
  if (failed_) return mpa::ulpdu_answer::taken;
  const const_bytes head = unit.head();
  auto answer = !head.empty() && is_tagged(head[0]) ? on_tagged(unit) : on_untagged(unit);
  failed_ = !answer.has_value();
  return answer;
}

result<mpa::ulpdu_answer> receiver::on_tagged(const mpa::ulpdu& unit) noexcept {
  IWARP_TRY(const auto header, tagged_header::parse(unit.head()));
  const std::size_t size = unit.size() - tagged_header_size;
  IWARP_CHECK(upper_.check_tagged(header, size));
  // RFC 5041 s5.2: STag and TO of a zero-length message MUST NOT be checked.
  if (size != 0) {
    IWARP_TRY(const auto target, upper_.resolve_tagged(header, size));
    assert(target.bytes.size() == size);
    unit.copy_to(tagged_header_size, target.bytes);
    upper_.release_tagged(target);
  }
  IWARP_CHECK(upper_.tagged_placed(header, size));
  return mpa::ulpdu_answer::taken;
}

result<mpa::ulpdu_answer> receiver::on_untagged(const mpa::ulpdu& unit) noexcept {
  IWARP_TRY(const auto header, untagged_header::parse(unit.head()));
  const std::size_t size = unit.size() - untagged_header_size;
  IWARP_CHECK(upper_.check_untagged(header, size));
  // RFC 5041 s7.1: QN, MSN, buffer, MO and MO + length MUST be valid before anything is placed.
  if (header.queue >= untagged_queues) return fail(errc::untagged_invalid_queue);
  queue_state& state = queues_[header.queue];
  // Segments come in stream order, so exactly one MSN is in range.
  if (header.sequence != state.expected) return fail(errc::untagged_msn_out_of_range);
  if (!state.open) {
    untagged_target target;
    IWARP_TRY(const auto answer, upper_.untagged_buffer(header, target));
    switch (answer) {
      case buffer_answer::ready:
        state.target = target;
        break;
      case buffer_answer::none:
        return fail(errc::untagged_no_buffer);
      case buffer_answer::hold:
        return mpa::ulpdu_answer::held;
    }
  }
  if (header.offset != state.placed) return fail(errc::untagged_invalid_offset);
  if (size > std::min(state.target.size, max_message) - state.placed) return fail(errc::untagged_too_long);
  place(unit, size, state);
  state.open = true;
  if (header.last) {
    const std::uint32_t message_size = state.placed;
    const msn finished = state.expected;
    state = queue_state{};
    state.expected = finished;
    ++state.expected;
    IWARP_CHECK(upper_.untagged_placed(header, message_size));
  }
  return mpa::ulpdu_answer::taken;
}

void receiver::place(const mpa::ulpdu& unit, std::size_t size, queue_state& state) noexcept {
  std::size_t from = untagged_header_size;
  while (from != untagged_header_size + size) {
    assert(state.piece < state.target.pieces.size());
    const mutable_bytes free = state.target.pieces[state.piece].subspan(state.piece_offset);
    if (free.empty()) {
      ++state.piece;
      state.piece_offset = 0;
      continue;
    }
    const std::size_t n = std::min(free.size(), untagged_header_size + size - from);
    unit.copy_to(from, free.first(n));
    from += n;
    state.piece_offset += n;
  }
  state.placed += static_cast<std::uint32_t>(size);
}

}  // namespace iwarp::ddp
