// Part of iwarp-dump.
// IPv4 and IPv6 headers down to TCP, with fragments put together.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "tools/dump/endpoint.hpp"

namespace iwarp::dump {

/// What IP carries: one TCP segment, with its header.
struct ip_payload {
  endpoint from;  // ports are 0
  endpoint to;
  const_bytes octets{};    // as far as captured; valid until the next packet is given
  std::size_t length = 0;  // on the wire, octets.size() or more
};

/// Fragments of one direction of nothing else: bounded memory, the oldest unfinished packets go first.
class ip_reader {
 public:
  /// The TCP segment in `packet` (from its IP header on), or that this fragment completes; nothing for everything else.
  [[nodiscard]] std::optional<ip_payload> read(const_bytes packet);

  static constexpr std::size_t max_unfinished = 256;  // packets of 64 KiB at most

 private:
  struct fragment_key {
    std::array<std::uint8_t, 16> from{};
    std::array<std::uint8_t, 16> to{};
    std::uint32_t identification = 0;
    bool ipv6 = false;
    auto operator<=>(const fragment_key&) const = default;
  };
  struct unfinished {
    std::map<std::size_t, std::size_t> have;  // begin -> end
    std::vector<std::byte> octets;
    std::optional<std::size_t> total;
    std::list<fragment_key>::iterator age;
  };

  [[nodiscard]] std::optional<ip_payload> read_ipv4(const_bytes packet);
  [[nodiscard]] std::optional<ip_payload> read_ipv6(const_bytes packet);
  /// True when `whole_` now holds the packet that this fragment was the last of.
  [[nodiscard]] bool add_fragment(const fragment_key& key, std::size_t at, bool more, const_bytes octets);

  std::map<fragment_key, unfinished> unfinished_;
  std::list<fragment_key> by_age_;
  std::vector<std::byte> whole_;
};

}  // namespace iwarp::dump
