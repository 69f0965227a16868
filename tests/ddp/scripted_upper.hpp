// Internal to the tests of ddp.
// The layer above ddp::receiver as a script: what it answers is set by the test, what it is asked is written down.
// Threading: one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "ddp/error.hpp"
#include "ddp/upper_layer.hpp"
#include "tests/ddp/segments.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace iwarp::ddp::test {

class scripted_upper final : public upper_layer {
 public:
  // Answers.
  std::error_code check;                        ///< of check_tagged() and check_untagged(), when it is an error
  std::error_code resolve;                      ///< of resolve_tagged()
  std::error_code buffer;                       ///< of untagged_buffer(), before `answer` is looked at
  std::error_code placed;                       ///< of tagged_placed() and untagged_placed()
  buffer_answer answer = buffer_answer::ready;  ///< of untagged_buffer()
  octets memory = octets(256, untouched);       ///< what every STag names, from TO 0 on
  std::vector<mutable_bytes> pieces;            ///< the buffer of the next untagged message
  std::optional<std::uint64_t> claimed_size;    ///< its size, when it is not the sum of the pieces

  // What happened.
  std::vector<std::string> calls;
  std::vector<tagged_header> tagged;                                ///< of tagged_placed()
  std::vector<std::pair<untagged_header, std::uint32_t>> messages;  ///< of untagged_placed()
  int pinned = 0;                                                   ///< targets resolved and not released

  static constexpr std::byte untouched{0xEE};

  /// The calls since the last time, in order.
  std::vector<std::string> take_calls() { return std::exchange(calls, {}); }

  result<> check_tagged(const tagged_header&, std::size_t payload) noexcept override {
    calls.push_back("check_tagged " + std::to_string(payload));
    return answer_of(check);
  }
  result<> check_untagged(const untagged_header&, std::size_t payload) noexcept override {
    calls.push_back("check_untagged " + std::to_string(payload));
    return answer_of(check);
  }
  result<tagged_target> resolve_tagged(const tagged_header& header, std::size_t size) noexcept override {
    calls.push_back("resolve " + std::to_string(size));
    if (resolve) return fail(resolve);
    if (header.offset > memory.size() || size > memory.size() - header.offset) {
      return fail(errc::tagged_base_or_bounds);
    }
    ++pinned;
    return tagged_target{mutable_bytes(memory).subspan(header.offset, size), this};
  }
  void release_tagged(const tagged_target& target) noexcept override {
    calls.push_back("release " + std::to_string(target.bytes.size()));
    if (target.pin == this) --pinned;
  }
  result<> tagged_placed(const tagged_header& header, std::size_t size) noexcept override {
    calls.push_back("tagged_placed " + std::to_string(size));
    tagged.push_back(header);
    return answer_of(placed);
  }
  result<buffer_answer> untagged_buffer(const untagged_header&, untagged_target& out) noexcept override {
    calls.push_back("buffer");
    if (buffer) return fail(buffer);
    if (answer == buffer_answer::ready) {
      out.pieces = pieces;
      out.size = 0;
      for (const mutable_bytes piece : pieces) out.size += piece.size();
      if (claimed_size) out.size = *claimed_size;
    }
    return answer;
  }
  result<> untagged_placed(const untagged_header& header, std::uint32_t size) noexcept override {
    calls.push_back("untagged_placed " + std::to_string(size));
    messages.emplace_back(header, size);
    return answer_of(placed);
  }

 private:
  static result<> answer_of(std::error_code ec) noexcept {
    if (ec) return fail(ec);
    return {};
  }
};

}  // namespace iwarp::ddp::test
