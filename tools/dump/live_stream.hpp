// Part of iwarp-dump.
// A TCP connection of this process, analysed as if it were captured: each read and each write is a frame.
// Threading: not thread-safe; one caller at a time.  Time: the clock, for the frames.  I/O: reads, writes and waits.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/bytes.hpp"
#include "tcp_glue/endpoint.hpp"
#include "tools/common/peer.hpp"
#include "tools/dump/connection.hpp"
#include "tools/dump/events.hpp"
#include "tools/dump/stream_analysis.hpp"

namespace iwarp::dump {

class live_stream {
 public:
  /// Connects. Throws tools::failure when no address answers in time.
  live_stream(const tools::peer& where, std::chrono::milliseconds patience, event_sink& out);
  ~live_stream();

  void send(const_bytes octets) { queue_.insert(queue_.end(), octets.begin(), octets.end()); }
  /// Writes what is queued and reads what comes until `done`, or the peer ended, or the time is over: which is told by
  /// calling `done` again, and ended(). Throws tools::failure when the connection breaks.
  void run(const std::function<bool()>& done, std::chrono::milliseconds patience);
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size() - sent_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// FIN.
  void close_write();
  /// The end of the analysis; its counts.
  summary_event finish();

  live_stream(const live_stream&) = delete;
  live_stream& operator=(const live_stream&) = delete;

 private:
  void tell(side from, const_bytes octets, bool syn, bool fin, bool rst = false);

  int fd_ = -1;
  endpoint client_;
  endpoint server_;
  std::vector<std::byte> queue_;
  std::size_t sent_ = 0;
  bool ended_ = false;
  std::uint32_t next_[2] = {1, 1};
  frame_ref frame_;
  reassembly_limits limits_;
  memory_use memory_;
  summary_event totals_;
  std::unique_ptr<connection> tcp_;
  std::unique_ptr<stream_analysis> analysis_;
};

}  // namespace iwarp::dump
