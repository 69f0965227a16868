// Part of iwarp-dump.
// The default output: one aligned line per message, start-up frame and problem; with `fpdus` one for each FPDU, too.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: through an output_buffer.
#pragma once

#include <optional>

#include "tools/dump/events.hpp"
#include "tools/dump/output_buffer.hpp"

namespace iwarp::dump {

struct text_options {
  bool fpdus = false;  // -v
  bool hex = false;    // the octets of every FPDU and start-up frame
};

/// What a message says beyond its header, as in its line; nothing for most.
void append_detail(fmt::memory_buffer& out, const message_event& e);
/// What a start-up frame says, as in its line, with as much of its private data.
void append_fields(fmt::memory_buffer& out, const mpa_event& e, std::size_t private_octets);

class text_writer final : public event_sink {
 public:
  text_writer(output_buffer& out, text_options options) noexcept : out_(out), options_(options) {}

  void on(const stream_event& e) override;
  void on(const mpa_event& e) override;
  void on(const fpdu_event& e) override;
  void on(const message_event& e) override;
  void on(const problem_event& e) override;
  void on(const note_event& e) override;
  void on(const summary_event& e) override;

 private:
  void begin(const place& at, std::string_view what);
  void hex(const_bytes octets);

  output_buffer& out_;
  text_options options_;
  std::optional<std::int64_t> origin_;  // time of the first event
};

}  // namespace iwarp::dump
