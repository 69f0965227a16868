// Internal to tests/dump.
// Everything the analyser tells, kept; and what is the same however a stream was cut, as lines.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <string>
#include <vector>

#include "tests/dump/synthetic.hpp"
#include "tools/dump/analyser.hpp"
#include "tools/dump/events.hpp"

namespace iwarp::dump_test {

struct collected final : dump::event_sink {
  void on(const dump::stream_event& e) override { streams.push_back(e); }
  void on(const dump::mpa_event& e) override;
  void on(const dump::fpdu_event& e) override;
  void on(const dump::message_event& e) override;
  void on(const dump::problem_event& e) override;
  void on(const dump::note_event& e) override { notes.emplace_back(e.rule); }
  void on(const dump::summary_event& e) override { summary = e; }

  std::vector<dump::stream_event> streams;
  std::vector<dump::mpa_event> frames;  // their views are void
  std::vector<dump::fpdu_event> fpdus;  // likewise
  std::vector<octets> payloads;         // of the FPDUs
  std::vector<dump::message_event> messages;
  std::vector<dump::problem_event> problems;
  std::vector<std::string> notes;
  dump::summary_event summary;

  /// Rules of the problems, in order: "MPA-36 DDP-10".
  [[nodiscard]] std::string rules() const;
  /// Short names of the messages: "Send Write".
  [[nodiscard]] std::string operations() const;
  /// Each direction's FPDUs, messages and start-up frames without frame numbers and times; sorted by direction.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::vector<std::string> from_client_;
  std::vector<std::string> from_server_;
  std::vector<std::string>& of(const dump::place& at) { return at.from == side::client ? from_client_ : from_server_; }
};

collected analyse(const std::vector<frame>& frames, int link_type = 1, dump::analyser_options options = {});

}  // namespace iwarp::dump_test
