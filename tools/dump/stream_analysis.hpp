// Part of iwarp-dump.
// One TCP connection as iWARP: is it one, what its start-up says, then both directions' FPDUs and messages.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tools/dump/connection.hpp"
#include "tools/dump/events.hpp"
#include "tools/dump/fpdu_reader.hpp"
#include "tools/dump/message_tracker.hpp"
#include "tools/dump/problem_output.hpp"
#include "tools/dump/startup_analysis.hpp"

namespace iwarp::dump {

class stream_analysis final : public octet_consumer, private analysis_output {
 public:
  /// `tcp`, `memory`, `out` and `totals` must outlive this object; `totals` counts over all streams. `forced`: it is
  /// iWARP, whatever it looks like.
  stream_analysis(std::uint64_t number, connection& tcp, memory_use& memory, bool forced, event_sink& out,
                  summary_event& totals);
  ~stream_analysis();

  void on_octets(side from, std::uint64_t offset, const_bytes octets, frame_ref frame) override;
  void on_hole(side from, std::uint64_t offset, std::uint64_t size, hole_kind kind, frame_ref frame) override;
  void on_overlap(side from, std::uint64_t offset, std::uint64_t size, frame_ref frame) override;
  void on_end(side from, ending how, frame_ref frame) override;

  [[nodiscard]] std::uint64_t number() const noexcept { return info_.number; }
  /// Known not to be iWARP: nothing more need be told.
  [[nodiscard]] bool hopeless() const noexcept { return hopeless_; }

 private:
  class half;

  void problem(side from, std::uint64_t offset, frame_ref frame, std::string_view rule, std::string text) override;
  void message(const message_event& m) override;

  [[nodiscard]] half& at(side s) noexcept { return *halves_[index_of(s)]; }
  void found(found_by how, frame_ref frame);
  /// A start-up frame is whole.
  void frame_complete(half& h);
  void report_frame(half& h, const std::optional<agreement>& agreed);
  void enter_full_operation(half& initiator, half& responder);
  /// Before an FPDU of this side is told: may it come now?
  void check_turn(half& h, const fpdu_unit& unit, const fpdu_event& e);
  void check_hopeless();
  [[nodiscard]] place place_of(side from, std::uint64_t offset, frame_ref frame) const noexcept {
    return {.stream = &info_, .from = from, .frame = frame, .offset = offset};
  }

  connection& tcp_;
  event_sink& out_;
  summary_event& totals_;
  stream_info info_;
  bool named_ = false;
  bool forced_;
  bool found_ = false;
  bool hopeless_ = false;
  bool rejected_ = false;
  std::uint64_t messages_ = 0;
  std::optional<agreement> agreed_;
  std::optional<side> initiator_;
  std::array<std::unique_ptr<half>, 2> halves_;
  int ended_ = 0;
  bool closed_ = false;
};

}  // namespace iwarp::dump
