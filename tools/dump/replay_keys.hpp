// Part of iwarp-dump.
// STags and offsets of a capture, and what the live peer has instead. A peer names its buffers in its Read Requests,
// and, in ways of its ULP's own, within what it sends: where a recorded message has the octets of an STag (or of a
// tagged offset) that the initiator uses later, the live message has the live one in the same place. Threading: not
// thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/dump/replay_script.hpp"

namespace iwarp::dump {

class replay_keys {
 public:
  explicit replay_keys(const replay_script& script);

  /// Learns from a message of the responder and compares it with the recorded one. Index of the first octet of payload
  /// that differs and is no key; payload sizes must be equal. Nothing: none does.
  std::optional<std::size_t> learn(const heard_message& recorded, const heard_message& live);
  /// The ULPDU with live keys in the place of recorded ones.
  void translate(std::vector<std::byte>& ulpdu) const;

 private:
  struct key {
    stag live{};
    std::uint64_t recorded_offset = 0;
    std::uint64_t live_offset = 0;
  };
  /// The first offset at which the initiator uses each STag of the responder.
  std::map<std::uint32_t, std::uint64_t> used_;
  std::map<std::uint32_t, key> keys_;  // by recorded STag

  void translate(mutable_bytes tag, mutable_bytes offset) const;
};

}  // namespace iwarp::dump
