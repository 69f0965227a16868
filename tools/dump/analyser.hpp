// Part of iwarp-dump.
// Packets in, events out: the whole way from a captured frame to messages and problems. Memory is bounded, whatever the
// capture holds.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "tools/dump/capture_file.hpp"
#include "tools/dump/connection.hpp"
#include "tools/dump/events.hpp"
#include "tools/dump/ip_packet.hpp"
#include "tools/dump/stream_analysis.hpp"

namespace iwarp::dump {

struct analyser_options {
  std::set<std::uint16_t> ports;  // only connections with one of these, and those are taken to be iWARP; empty: all
  reassembly_limits limits;
};

class analyser {
 public:
  /// `out` must outlive this object.
  analyser(analyser_options options, event_sink& out);
  ~analyser();

  void add(const packet& p);
  /// The end of the capture. Reports what is unfinished, then the summary. Call once.
  summary_event finish();

  /// Octets held for later, of all connections: for tests of the bound.
  [[nodiscard]] std::size_t memory_in_use() const noexcept { return memory_.octets; }

  analyser(const analyser&) = delete;
  analyser& operator=(const analyser&) = delete;

 private:
  /// Both ends, the lower one first.
  struct ends {
    endpoint low;
    endpoint high;
    bool operator==(const ends&) const = default;
  };
  struct ends_hash {
    std::size_t operator()(const ends& e) const noexcept;
  };
  struct tracked;
  using tracked_list = std::list<std::pair<ends, std::unique_ptr<tracked>>>;

  [[nodiscard]] tracked& find(const tcp_segment& s);
  void close(tracked& t);

  analyser_options options_;
  event_sink& out_;
  summary_event totals_;
  memory_use memory_;
  ip_reader ip_;
  tracked_list by_use_;  // the one silent for longest in front
  std::unordered_map<ends, tracked_list::iterator, ends_hash> known_;
  tracked_list::iterator latest_;  // of the packet before: the next is likely of the same connection
  frame_ref last_;
};

}  // namespace iwarp::dump
