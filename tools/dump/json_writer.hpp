// Part of iwarp-dump.
// --json: one object per line. Keys and their order are a promise to whoever reads them (docs/iwarp-dump.md).
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: through an output_buffer.
#pragma once

#include "tools/dump/events.hpp"
#include "tools/dump/output_buffer.hpp"

namespace iwarp::dump {

class json_writer final : public event_sink {
 public:
  explicit json_writer(output_buffer& out) noexcept : out_(out) {}

  using event_sink::on;
  void on(const mpa_event& e) override;
  void on(const fpdu_event& e) override;
  void on(const message_event& e) override;
  void on(const problem_event& e) override;
  void on(const summary_event& e) override;

 private:
  output_buffer& out_;
};

}  // namespace iwarp::dump
