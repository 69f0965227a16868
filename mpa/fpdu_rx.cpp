#include "mpa/fpdu_rx.hpp"

#include "mpa/crc32c.hpp"
#include "mpa/error.hpp"
#include "mpa/marker.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

namespace iwarp::mpa {
namespace {

constexpr std::size_t no_marker = std::numeric_limits<std::size_t>::max();

}  // namespace

fpdu_rx::fpdu_rx(rx_memory& memory, ulpdu_sink& sink) noexcept : memory_(memory), sink_(sink) {}

fpdu_rx::~fpdu_rx() { memory_.give_back(std::move(carry_)); }

void fpdu_rx::start(bool crc, bool markers, std::uint64_t position) noexcept {
  assert(position % 4 == 0);
  drop_everything();
  position_ = position;
  last_total_ = 0;
  crc_ = crc;
  markers_ = markers;
  held_ = false;
  error_.clear();
  counters_ = {};
}

// Receiving -----------------------------------------------------------------------------------------------------------

mutable_bytes fpdu_rx::window() noexcept {
  if (held_ || error_) return {};
  move_to_staging();
  const mutable_bytes staging = memory_.staging();

  // FPDUs of one size are the usual case in a bulk transfer: let the window end where one of them will, so that a read
  // that fills it leaves nothing to move.
  std::size_t want = rx_memory::read_size;
  if (last_total_ != 0) {
    extent current{};
    const bool known = measure({data_ + begin_, unfinished()}, position_, current);
    const std::size_t rest = (known ? current.total : std::max(last_total_, unfinished())) - unfinished();
    want = rest + (want - rest) / last_total_ * last_total_;
  }
  if (staging.size() - end_ < want) {
    std::memmove(data_, data_ + begin_, unfinished());
    end_ = unfinished();
    begin_ = 0;
  }
  // A partial FPDU is shorter than max_fpdu, so a full read always fits behind it.
  assert(want != 0 && want <= rx_memory::read_size && want <= staging.size() - end_);
  return staging.subspan(end_, want);
}

result<fpdu_rx::status> fpdu_rx::commit(std::size_t n) noexcept {
  if (error_) return fail(error_);
  if (n == 0) return held_ ? status::held : status::running;
  assert(!held_ && carry_.data == nullptr && n <= rx_memory::staging_size - end_);
  end_ += n;
  counters_.octets += n;
  return hand_up(false);
}

result<fpdu_rx::status> fpdu_rx::resume() noexcept {
  if (error_) return fail(error_);
  if (!std::exchange(held_, false)) return status::running;
  return hand_up(true);
}

void fpdu_rx::park() noexcept {
  const std::size_t size = unfinished();
  const bool oversized = carry_.capacity > rx_memory::small_carry_size && size <= rx_memory::small_carry_size;
  if (size == 0) {
    drop_everything();
  } else if (carry_.data == nullptr || oversized) {
    rx_memory::carry keep = memory_.take(size);
    std::memcpy(keep.data.get(), data_ + begin_, size);
    memory_.give_back(std::exchange(carry_, std::move(keep)));
    data_ = carry_.data.get();
    begin_ = 0;
    end_ = size;
  }
}

result<std::size_t> fpdu_rx::consume(const_bytes in) noexcept {
  std::size_t taken = 0;
  result<status> now = held_ ? status::held : status::running;
  if (error_) now = fail(error_);
  while (taken != in.size() && now && *now == status::running) {
    const mutable_bytes space = window();
    const std::size_t n = std::min(space.size(), in.size() - taken);
    std::memcpy(space.data(), in.data() + taken, n);
    taken += n;
    now = commit(n);
  }
  park();
  if (!now) return fail(now.error());
  return taken;
}

// Finding, verifying and handing up FPDUs -----------------------------------------------------------------------------

/// Fills `out` and answers true once ULPDU_Length is there.
bool fpdu_rx::measure(const_bytes in, std::uint64_t position, extent& out) const noexcept {
  // A marker right in front of ULPDU_Length belongs to this FPDU (RFC 5044 s4.3).
  out.lead = markers_ && marker_due(position) ? marker_size : 0;
  if (in.size() < out.lead + length_field_size) return false;
  out.ulpdu_size = load_be<std::uint16_t>(in.subspan(out.lead).first<length_field_size>());
  const std::size_t plain = padded_size(out.ulpdu_size) + crc_field_size;
  out.first_marker = no_marker;
  out.total = out.lead + plain;
  if (markers_) {
    out.first_marker = marker_distance(position + out.lead);
    out.total += marker_size * markers_within(plain, out.first_marker);
  }
  return true;
}

result<> fpdu_rx::verify(const_bytes fpdu, const extent& e) const noexcept {
  if (crc_) {
    // From the leading marker, if any, up to the CRC field, with every marker in between (RFC 5044 s4.4).
    const std::uint32_t computed = crc32c(fpdu.first(fpdu.size() - crc_field_size));
    if (computed != load_le<std::uint32_t>(fpdu.last<crc_field_size>())) return fail(errc::crc_mismatch);
  }
  if (!markers_) return {};
  if (e.lead != 0 && received_fpdu_pointer(fpdu.first<marker_size>()) != 0) return fail(errc::marker_mismatch);
  const const_bytes from_length = fpdu.subspan(e.lead);
  for (std::size_t at = e.first_marker; at < from_length.size(); at += marker_interval) {
    // Every marker in an FPDU MUST point back to its ULPDU_Length (RFC 5044 s4.3).
    const std::uint16_t pointer = received_fpdu_pointer(from_length.subspan(at).first<marker_size>());
    if (pointer != fpdu_pointer(at)) return fail(errc::marker_mismatch);
  }
  return {};
}

/// Hands up every whole FPDU that is here.
result<fpdu_rx::status> fpdu_rx::hand_up(bool first_is_verified) noexcept {
  extent e{};
  while (true) {
    const const_bytes in{data_ + begin_, unfinished()};
    // The entire FPDU MUST be here before its ULPDU is passed up (RFC 5044 s6).
    if (!measure(in, position_, e) || in.size() < e.total) return status::running;
    const const_bytes fpdu = in.first(e.total);
    if (!std::exchange(first_is_verified, false)) {
      // An FPDU MUST be valid before anything of it is passed up (RFC 5044 s6).
      if (auto valid = verify(fpdu, e); !valid) {
        error_ = valid.error();
        drop_everything();
        return fail(error_);
      }
    }
    const ulpdu unit(fpdu.subspan(e.lead, e.total - e.lead - crc_field_size), e.ulpdu_size, e.first_marker,
                     position_ + e.lead);
    const result<ulpdu_answer> answer = sink_.on_ulpdu(unit);
    if (!answer) {
      error_ = answer.error();
      drop_everything();
      return fail(error_);
    }
    if (*answer == ulpdu_answer::held) {
      held_ = true;
      return status::held;
    }
    ++counters_.fpdus;
    begin_ += e.total;
    position_ += e.total;
    last_total_ = e.total;
  }
}

// Where unfinished octets are -----------------------------------------------------------------------------------------

void fpdu_rx::move_to_staging() noexcept {
  const mutable_bytes staging = memory_.staging();
  const std::size_t size = unfinished();
  if (carry_.data != nullptr) {
    std::memcpy(staging.data(), data_ + begin_, size);
    memory_.give_back(std::move(carry_));
    begin_ = 0;
    end_ = size;
  } else if (size == 0) {
    begin_ = end_ = 0;
  }
  data_ = staging.data();
}

void fpdu_rx::drop_everything() noexcept {
  begin_ = end_ = 0;
  memory_.give_back(std::move(carry_));
}

// Getters -------------------------------------------------------------------------------------------------------------

bool fpdu_rx::mid_fpdu() const noexcept {
  // While held, whole FPDUs wait here too: what counts is whether the last octet received ends one of them.
  const_bytes in{data_ + begin_, unfinished()};
  std::uint64_t position = position_;
  extent e{};
  while (!in.empty()) {
    if (!measure(in, position, e) || in.size() < e.total) return true;
    in = in.subspan(e.total);
    position += e.total;
  }
  return false;
}

const fpdu_counters& fpdu_rx::counters() const noexcept { return counters_; }

}  // namespace iwarp::mpa
