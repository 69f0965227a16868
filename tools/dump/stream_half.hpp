// Part of iwarp-dump.
// One direction of a stream_analysis, from the first octet of TCP on.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <optional>
#include <vector>

#include "tools/dump/stream_analysis.hpp"

namespace iwarp::dump {

class stream_analysis::half final : public fpdu_consumer {
 public:
  enum class phase : std::uint8_t {
    looking,  ///< for a start-up key; also for FPDUs when the beginning is not in the capture
    frame,    ///< inside a start-up frame
    waiting,  ///< the frame is whole, the peer's is not
    full,     ///< full operation
    left,     ///< not iWARP, or not any longer
  };

  half(stream_analysis& owner, side from, memory_use& memory)
      : owner_(owner), from_(from), reader_(*this, memory), tracker_(from, owner.messages_, owner) {}

  void octets(std::uint64_t offset, const_bytes in, frame_ref frame);
  void hole(std::uint64_t offset, std::uint64_t size, hole_kind kind, frame_ref frame);
  void end(ending how, frame_ref frame);

  /// From `waiting`, or `looking` when no frame of this side was captured: the rest is FPDUs.
  void enter_full(framing how);
  void leave();

  [[nodiscard]] phase current() const noexcept { return phase_; }
  [[nodiscard]] side from() const noexcept { return from_; }
  [[nodiscard]] const std::optional<startup_fields>& frame() const noexcept { return fields_; }
  [[nodiscard]] std::uint64_t frame_offset() const noexcept { return frame_offset_; }
  /// Where full operation begins.
  [[nodiscard]] std::uint64_t full_from() const noexcept { return full_from_; }
  [[nodiscard]] frame_ref frame_at() const noexcept { return frame_at_; }
  [[nodiscard]] message_tracker& tracker() noexcept { return tracker_; }
  [[nodiscard]] fpdu_reader& reader() noexcept { return reader_; }
  [[nodiscard]] std::uint64_t fpdus() const noexcept { return fpdus_; }
  /// Octets that arrived behind the frame while the peer's was not there.
  [[nodiscard]] std::size_t early() const noexcept { return early_; }
  [[nodiscard]] std::uint64_t early_offset() const noexcept { return early_offset_; }
  /// Start-up cannot be what this direction begins with.
  [[nodiscard]] bool hopeless() const noexcept;
  bool reported = false;  // its start-up frame

  void on_fpdu(const fpdu_unit& unit) override;
  void on_framing_problem(std::uint64_t offset, frame_ref frame, std::string_view rule, std::string text) override;
  void on_found(frame_ref frame) override;
  void on_gap() override { tracker_.handle_gap(); }
  void on_lost(std::uint64_t offset, std::uint64_t octets, std::uint64_t missing, frame_ref frame) override;
  void on_unreadable(std::uint64_t offset, frame_ref frame, bool crc_bad, std::string text) override;

 private:
  static constexpr std::size_t look_limit = 64 * 1024;    // octets before the start-up, of another protocol
  static constexpr std::size_t early_limit = 256 * 1024;  // of `waiting`

  void look(std::uint64_t offset, const_bytes in, frame_ref frame);
  void collect(std::uint64_t offset, const_bytes in, frame_ref frame);

  stream_analysis& owner_;
  side from_;
  phase phase_ = phase::looking;
  bool begun_ = false;
  bool mid_stream_ = false;  // octets before these exist that the capture has not
  std::uint64_t looked_ = 0;
  std::vector<std::byte> buffer_;  // looking: the last octets, in which a key may begin; frame: the frame
  std::uint64_t buffer_offset_ = 0;
  std::optional<startup_fields> fields_;
  std::uint64_t frame_offset_ = 0;
  frame_ref frame_at_;
  std::uint64_t full_from_ = 0;
  struct piece {
    std::uint64_t offset;
    std::uint64_t hole;  // or octets:
    std::vector<std::byte> octets;
    frame_ref frame;
    hole_kind kind;
  };
  std::vector<piece> pieces_;  // waiting: what arrived
  std::size_t early_ = 0;      // octets in them
  std::uint64_t early_offset_ = 0;
  fpdu_reader reader_;
  message_tracker tracker_;
  std::uint64_t fpdus_ = 0;
  bool snap_said_ = false;
  bool last_hole_snapped_ = false;
};

}  // namespace iwarp::dump
