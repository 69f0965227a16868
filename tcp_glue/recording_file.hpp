// Internal to tcp_glue and verbs.
// A capture file (pcap, nanoseconds, raw IP) that this process writes of its own connections: no packet socket, no
// root. The IP and TCP headers are made up; what Wireshark and iwarp-dump rebuild from them is the octets that were
// read and written.
// Threading: any thread; records of several connections are never mixed.  Time: the system's real-time clock, for the
// records.  I/O: appends to one file, one write a record.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "tcp_glue/endpoint.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace iwarp::tcp_glue {

class recording_file {
 public:
  static constexpr std::uint8_t fin = 0x01, syn = 0x02, rst = 0x04, psh = 0x08, ack = 0x10;

  /// The TCP segment that a record shows.
  struct segment {
    endpoint from;
    endpoint to;
    std::uint32_t sequence = 0;
    std::uint32_t acknowledgment = 0;
    std::uint8_t flags = 0;
  };
  /// Most octets of one record, so that the whole packet keeps to the usual limit of capture files.
  static constexpr std::size_t max_payload = 65'535 - 40 - 20;
  /// Most pieces of one record.
  static constexpr std::size_t max_pieces = 512;

  /// Makes the file, or empties the one that is there. While it is open no other recording_file takes it, in this or
  /// another process; a forked child goes on with the one it inherited.
  /// Errors: resource_unavailable_try_again (somebody records there already), errno of open(2) and write(2).
  static result<std::shared_ptr<recording_file>> create(const std::string& path);
  ~recording_file();

  /// A connection begins. False: its other end is in this process too and is being recorded; one record is enough.
  bool begin(const endpoint& local, const endpoint& remote);
  void end(const endpoint& local, const endpoint& remote) noexcept;

  /// Appends one record of at most max_payload octets in at most max_pieces pieces. When the file cannot be written
  /// (full disk) recording ends, at a whole record; connections do not notice.
  void record(const segment& what, std::span<const gather_piece> payload) noexcept;

  /// False once writing has failed.
  [[nodiscard]] bool writable() const noexcept;

  recording_file(const recording_file&) = delete;
  recording_file& operator=(const recording_file&) = delete;

 private:
  explicit recording_file(int fd) noexcept : fd_(fd) {}

  mutable std::mutex mutex_;
  const int fd_;
  bool failed_ = false;
  std::set<std::pair<endpoint, endpoint>> open_;  // {local, remote}
};

}  // namespace iwarp::tcp_glue
