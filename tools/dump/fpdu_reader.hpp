// Part of iwarp-dump.
// One direction in full operation: octets and holes become FPDUs. mpa::fpdu_rx stops at the first error, as an endpoint
// must; this one reports it and goes on, finds the next FPDU where framing is lost, and bridges what the capture lacks.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/dump/events.hpp"
#include "tools/dump/framing.hpp"
#include "tools/dump/tcp_half.hpp"

namespace iwarp::dump {

/// An FPDU as the capture has it.
struct fpdu_unit {
  std::uint64_t offset = 0;    // in the TCP stream, of its ULPDU_Length
  std::size_t ulpdu_size = 0;  // ULPDU_Length
  const_bytes ulpdu;           // without markers; shorter than ulpdu_size when octets are missing
  const_bytes wire;            // with its leading marker, as far as it was captured in one piece
  crc_state crc = crc_state::off;
  std::uint32_t crc_field = 0;
  std::uint32_t crc_computed = 0;  // with crc bad
  bool pad_zero = true;
  frame_ref first_frame;
  frame_ref frame;
};

class fpdu_consumer {
 public:
  virtual void on_fpdu(const fpdu_unit& unit) = 0;
  /// A rule of MPA broken at this offset.
  virtual void on_framing_problem(std::uint64_t offset, frame_ref frame, std::string_view rule, std::string text) = 0;
  /// The first FPDU of a stream whose start-up was not seen: how() now says something.
  virtual void on_found(frame_ref frame) = 0;
  /// Octets are missing from here on, and with them perhaps FPDUs; on_lost() follows when the next is found.
  virtual void on_gap() = 0;
  /// `octets` of the stream from `offset` on belong to no FPDU that could be read; `missing` of them were never
  /// captured.
  virtual void on_lost(std::uint64_t offset, std::uint64_t octets, std::uint64_t missing, frame_ref frame) = 0;
  /// An FPDU with a wrong CRC behind which no FPDU follows: framing is lost.
  virtual void on_unreadable(std::uint64_t offset, frame_ref frame, bool crc_bad, std::string text) = 0;

 protected:
  ~fpdu_consumer() = default;
};

class fpdu_reader {
 public:
  fpdu_reader(fpdu_consumer& out, memory_use& memory) noexcept : out_(out), memory_(memory) {}
  ~fpdu_reader() { memory_.octets -= counted_; }

  /// Full operation begins at this offset of the TCP stream; `how` has crc and markers, as far as negotiated.
  void begin(std::uint64_t offset, framing how);
  /// The stream began before the capture, or with a hole of `missing` octets that ends here.
  void begin_unknown(std::uint64_t offset, std::uint64_t missing = 0);

  void octets(std::uint64_t offset, const_bytes in, frame_ref frame);
  void hole(std::uint64_t offset, std::uint64_t size, frame_ref frame);
  /// No more octets. What is unfinished counts as lost.
  void end(frame_ref frame);

  [[nodiscard]] const framing& how() const noexcept { return how_; }
  /// The other direction found out.
  void learn_crc(bool on) noexcept {
    if (!how_.crc) how_.crc = on;
  }
  [[nodiscard]] bool in_sync() const noexcept { return !hunting_; }
  [[nodiscard]] bool mid_fpdu() const noexcept { return !hunting_ && (buffer_.size() != 0 || gone_ != 0); }
  /// Octets looked through in vain since the last FPDU.
  [[nodiscard]] std::uint64_t hunted() const noexcept { return hunted_; }

  fpdu_reader(const fpdu_reader&) = delete;
  fpdu_reader& operator=(const fpdu_reader&) = delete;

  static constexpr std::size_t hunt_limit = 512 * 1024;

 private:
  /// From which index of buffer_ on octets came with which frame.
  struct mark {
    std::size_t begin;
    frame_ref frame;
  };

  void read(std::uint64_t offset, const_bytes in, frame_ref frame);
  /// Takes FPDUs off the front of `in`; how many octets. Nothing: framing was lost, and all of `in` is taken over by
  /// the hunt, which may be over already.
  [[nodiscard]] std::optional<std::size_t> take(std::uint64_t offset, const_bytes in, frame_ref frame, bool at_end);
  [[nodiscard]] bool suspicious(const_bytes in, const extent& e, crc_state crc) const noexcept;
  void hand_up(std::uint64_t offset, const_bytes in, const extent& e, crc_state crc, frame_ref frame);
  void check_markers(std::uint64_t offset, const_bytes in, const extent& e, frame_ref frame);
  void hand_up_cut(frame_ref frame);
  void lose(std::uint64_t offset, const_bytes in, frame_ref frame, bool at_end);
  void hunt_more(bool at_end);
  void keep(const_bytes in, frame_ref frame);
  void drop_front(std::size_t size);
  void clear();
  void count_memory();

  fpdu_consumer& out_;
  memory_use& memory_;
  std::size_t counted_ = 0;
  framing how_;
  bool hunting_ = false;
  bool other_only_ = false;        // the hunt begins where the framing as known failed
  bool startup_unknown_ = false;   // and no FPDU was found yet
  std::vector<std::byte> buffer_;  // of an unfinished FPDU, or what is hunted through
  std::vector<mark> marks_;
  std::uint64_t buffer_offset_ = 0;
  std::size_t wanted_ = 0;       // octets in buffer_ without which nothing more can be said
  std::uint64_t gone_ = 0;       // octets behind buffer_ that were passed over: the FPDU has a hole
  std::uint64_t missing_ = 0;    // of the octets lost since lost_from_, those never captured
  std::uint64_t lost_from_ = 0;  // hunting: where the last good FPDU ended
  std::size_t hunt_at_ = 0;      // index in buffer_
  std::uint64_t hunted_ = 0;
  bool first_ = true;               // no FPDU yet
  std::vector<std::byte> scratch_;  // ULPDU without its markers
};

}  // namespace iwarp::dump
