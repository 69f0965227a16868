// Part of iwarp-dump.
// A capture, packet by packet: pcap or pcapng from a file or standard input, compressed or not. libpcap reads the
// format and applies the BPF filter, Boost.Iostreams undoes gzip, bzip2, xz and zstd in front of it, as a stream:
// nothing is held but the current packet. Threading: not thread-safe; one caller at a time.  Time: none.  I/O: reads
// the file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "tools/dump/events.hpp"

namespace iwarp::dump {

struct packet {
  frame_ref frame;
  const_bytes octets;      // as far as captured; valid until the next one is read
  std::size_t length = 0;  // on the wire
  int link_type = 0;       // DLT_*
};

class capture_file {
 public:
  /// `path`: a file, or "-" for standard input. `filter`: a BPF expression, empty for none.
  /// Throws tools::failure: no such file, not a capture, a filter that does not compile.
  capture_file(const std::string& path, const std::string& filter);
  /// From a stream that is closed along with this object. `name`: how to call it.
  capture_file(std::FILE* stream, std::string name, const std::string& filter);
  ~capture_file();

  /// The next packet that passes the filter; false at the end. Frame numbers count those the filter drops, too.
  /// A damaged or cut file ends early: damage() then says how.
  bool next(packet& out);
  [[nodiscard]] int link_type() const noexcept;
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

  capture_file(const capture_file&) = delete;
  capture_file& operator=(const capture_file&) = delete;

 private:
  void begin(std::FILE* stream, const std::string& filter);

  struct state;
  std::unique_ptr<state> state_;
  std::string path_;
  std::string damage_;
  std::uint64_t number_ = 0;
};

}  // namespace iwarp::dump
