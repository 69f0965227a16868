// Part of iwarp-dump.
// --extract: a file for every message with the octets it carried, named STREAM-MESSAGE-OPERATION.bin by the numbers
// that the other outputs show. What is missing from the capture is 0. Threading: not thread-safe; one caller at a time.
// Time: none.  I/O: writes files.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "tools/dump/events.hpp"

namespace iwarp::dump {

class extractor final : public event_sink {
 public:
  /// Makes the folder when it is not there. `next` is told everything first. Throws tools::failure, as the calls do.
  extractor(std::string folder, event_sink& next);
  ~extractor();

  void on(const stream_event& e) override { next_.on(e); }
  void on(const mpa_event& e) override { next_.on(e); }
  void on(const fpdu_event& e) override;
  void on(const message_event& e) override;
  void on(const problem_event& e) override { next_.on(e); }
  void on(const note_event& e) override { next_.on(e); }
  void on(const lost_event& e) override { next_.on(e); }
  void on(const summary_event& e) override { next_.on(e); }

  extractor(const extractor&) = delete;
  extractor& operator=(const extractor&) = delete;

 private:
  using key = std::pair<std::uint64_t, std::uint64_t>;  // stream, message
  struct file {
    std::string name;
    std::uint64_t size = 0;
    int fd = -1;
    std::list<key>::iterator used;  // of by_use_, while it is open
  };
  static constexpr std::size_t most_open = 64;

  void open(const key& k, file& f, bool fresh);
  void close(file& f);

  std::string folder_;
  event_sink& next_;
  std::map<key, file> files_;  // of messages that have begun and not ended
  std::list<key> by_use_;      // of those that are open, the one not used for longest in front
};

}  // namespace iwarp::dump
