// Part of iwarp-dump.
// One direction above MPA: segments become messages, and what DDP and RDMAP forbid is found (RFC 5040, 5041, 7306).
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "tools/dump/fpdu_reader.hpp"
#include "tools/dump/problem_output.hpp"
#include "tools/dump/request_ledger.hpp"

namespace iwarp::dump {

class message_tracker {
 public:
  /// `messages`: the stream's count, which both directions number from.
  message_tracker(side from, std::uint64_t& messages, analysis_output& out) noexcept
      : from_(from), messages_(messages), out_(out) {}
  /// The other direction, whose requests this one answers. Before anything else.
  void set_peer(message_tracker& peer) noexcept { peer_ = &peer; }

  /// The start-up was not seen: what is open then may have begun before.
  void begin_uncertain() noexcept { handle_gap(); }
  /// Reads that may be outstanding in this direction.
  void limit_reads(std::optional<std::uint16_t> most) noexcept { most_reads_ = most; }

  /// Fills in what the event has of DDP and RDMAP. Report the event, then call handle().
  void describe(const fpdu_unit& unit, fpdu_event& e);
  /// Checks the segment and reports the message it ends.
  void handle(const fpdu_unit& unit, const fpdu_event& e);
  /// FPDUs may be missing here.
  void handle_gap() noexcept;
  /// `closed`: by FIN or RST; else the capture ended.
  void finish(bool closed, frame_ref frame);

  [[nodiscard]] bool terminated() const noexcept { return terminated_; }

 private:
  static constexpr std::size_t head_size = rdmap::max_terminate_size;
  static constexpr std::size_t most_invalidated = 4096;
  static constexpr unsigned longest_doubt = 256;  // responses

  /// A message that has begun.
  struct open_message {
    bool active = false;
    bool uncertain = false;  // there was a gap since its last segment
    message_event event;
    std::uint64_t next = 0;  // TO or MO of the next segment
    std::vector<std::byte> head;
    std::optional<std::uint64_t> request;  // a Read Response: the request's message number
    std::uint64_t expected = 0;            // octets that request asked for
  };

  void problem(const fpdu_unit& unit, std::string_view rule, std::string text);
  [[nodiscard]] open_message* slot_of(const fpdu_event& e) noexcept;
  [[nodiscard]] static bool continues(const fpdu_event& e, const open_message& m) noexcept;
  void check_header(const fpdu_unit& unit, const fpdu_event& e);
  void check_tagged(const fpdu_unit& unit, const fpdu_event& e, open_message& m, bool begins);
  void check_untagged(const fpdu_unit& unit, const fpdu_event& e, open_message& m, bool begins);
  void begin_response(const fpdu_unit& unit, const fpdu_event& e, open_message& m);
  void check_response_end(const fpdu_unit& unit, const fpdu_event& e, const open_message& m);
  void begin_message(const fpdu_unit& unit, const fpdu_event& e, open_message& m);
  void complete(const fpdu_unit& unit, open_message& m);
  void complete_request(const fpdu_unit& unit, open_message& m);
  void complete_atomic_response(const fpdu_unit& unit, open_message& m);
  void complete_terminate(const fpdu_unit& unit, open_message& m);
  void doubt_requests() noexcept;
  void request_answered() noexcept;
  void add_request(const fpdu_unit& unit, const pending_request& r);
  void check_valid(const fpdu_unit& unit, stag tag);
  void abandon(open_message& m, const fpdu_unit* unit, std::string_view rule, std::string_view why);

  side from_;
  std::uint64_t& messages_;
  analysis_output& out_;
  message_tracker* peer_ = nullptr;
  std::array<open_message, 2> tagged_;                                      // Write, Read Response
  std::array<open_message, 4> untagged_;                                    // by QN
  std::array<std::optional<std::uint32_t>, 4> sequence_{{1u, 1u, 1u, 1u}};  // next MSN; nothing: not known
  bool continues_ = false;  // what describe() saw continues an open message
  request_ledger requests_;
  bool requests_certain_ = true;  // neither a request nor a response can have been missed
  unsigned answered_ = 0;         // since that was doubted
  std::optional<std::uint16_t> most_reads_;
  std::unordered_set<std::uint32_t> invalidated_;  // STags of the peer, by this side's Sends with Invalidate
  bool terminated_ = false;
  bool said_after_terminate_ = false;
};

}  // namespace iwarp::dump
