// Part of iwarp-dump.
// What a replay needs of a capture: one stream as its initiator's acts and the answers that were seen, in their order.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tools/dump/events.hpp"

namespace iwarp::dump {

/// A message as seen, with its octets.
struct heard_message {
  rdmap::opcode op{};
  stag tag{};                       // tagged
  std::uint64_t tagged_offset = 0;  // of its first segment
  std::vector<std::byte> payload;
  std::optional<rdmap::read_request> read;  // of a Read Request
};

/// The start-up frame of one side.
struct heard_frame {
  std::vector<std::byte> wire;
  std::uint8_t revision = 0;
  bool markers = false;
  bool crc = false;
  bool rejected = false;
  std::optional<mpa::enhanced_data> enhanced;
  std::vector<std::byte> private_data;
};

/// An FPDU of the initiator, and how much of the responder had been heard before it.
struct initiator_act {
  std::vector<std::byte> ulpdu;
  std::size_t after = 0;  // messages of the responder
};

/// A sink that keeps one stream.
class replay_script final : public event_sink {
 public:
  /// More than this is not kept in memory: overflow() then says so.
  static constexpr std::size_t most_octets = std::size_t{1} << 30;

  /// `stream`: its number; nothing: the first that has a Request.
  explicit replay_script(std::optional<std::uint64_t> stream) : wanted_(stream) {}

  void on(const mpa_event& e) override;
  void on(const fpdu_event& e) override;
  void on(const message_event& e) override;
  void on(const problem_event& e) override;

  [[nodiscard]] const std::optional<std::uint64_t>& stream() const noexcept { return wanted_; }
  [[nodiscard]] const std::optional<heard_frame>& request() const noexcept { return request_; }
  [[nodiscard]] const std::optional<heard_frame>& reply() const noexcept { return reply_; }
  [[nodiscard]] const std::vector<initiator_act>& acts() const noexcept { return acts_; }
  [[nodiscard]] const std::vector<heard_message>& answers() const noexcept { return answers_; }
  /// Octets are missing from the capture: it cannot be played.
  [[nodiscard]] bool incomplete() const noexcept { return incomplete_; }
  [[nodiscard]] bool overflow() const noexcept { return octets_ > most_octets; }

 private:
  [[nodiscard]] bool mine(const place& at) const noexcept { return wanted_ && at.stream->number == *wanted_; }

  std::optional<std::uint64_t> wanted_;
  side initiator_ = side::client;
  std::optional<heard_frame> request_;
  std::optional<heard_frame> reply_;
  std::vector<initiator_act> acts_;
  std::vector<heard_message> answers_;
  std::map<std::uint64_t, std::vector<std::byte>> open_;  // payload of the responder's messages, by number
  std::size_t octets_ = 0;
  bool incomplete_ = false;
};

}  // namespace iwarp::dump
