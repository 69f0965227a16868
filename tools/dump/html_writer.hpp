// Part of iwarp-dump.
// --html: one page that needs nothing else, with a table of connections, a ladder diagram and plots. The sources of the
// page are in html/, and html/data.js reads what is written here.
// Messages, FPDUs and problems are columns of numbers, most of them differences to the row before, in blocks of JSON.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: writes a file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/dump/events.hpp"
#include "tools/dump/page_file.hpp"

namespace iwarp::dump {

/// What a page keeps at most, so that a browser can show it. The counts in it are of all there was.
struct html_limits {
  std::uint64_t messages = 1'000'000;
  std::uint64_t fpdus = 1'000'000;  // of messages of several; a message of one says it all
  std::uint64_t problems = 100'000;
  std::uint64_t streams = 10'000;
};

class html_writer final : public event_sink {
 public:
  /// The page appears under `path` with the summary. `capture`: the name of what was read. `next` is told everything.
  /// Throws tools::failure, as the calls do.
  html_writer(std::string path, std::string_view capture, event_sink& next, html_limits limits = {});
  ~html_writer();

  void on(const stream_event& e) override;
  void on(const mpa_event& e) override;
  void on(const fpdu_event& e) override;
  void on(const message_event& e) override;
  void on(const problem_event& e) override;
  void on(const note_event& e) override;
  void on(const lost_event& e) override;
  void on(const summary_event& e) override;

 private:
  /// Numbers with commas between them.
  class column {
   public:
    void add(std::uint64_t value) { fmt::format_to(std::back_inserter(separated()), "{}", value); }
    /// `value` less `before`, which it becomes. Differences wrap as unsigned numbers do.
    void step(std::uint64_t& before, std::uint64_t value);
    /// Likewise, for numbers a double may not hold: those beyond 2^53 as text, and the next from 0.
    void step_wide(std::uint64_t& before, std::uint64_t value);
    void add_text(std::string_view text);
    void flush(fmt::memory_buffer& out, std::string_view key);

   private:
    fmt::memory_buffer& separated() {
      if (text_.size() != 0) text_.push_back(',');
      return text_;
    }
    fmt::memory_buffer text_;
  };
  struct message_columns {
    column kind, stream, time, duration, frame, frames, number, length, segments, offset, tag, tagged_offset, sequence,
        request, reads, text_at, text;
    std::uint64_t rows = 0;
  };
  struct fpdu_columns {
    column kind, stream, number, time, frame, offset, length, position;
    std::uint64_t rows = 0;
  };
  struct problem_columns {
    column kind, stream, time, frame, offset, rule, text;
    std::uint64_t rows = 0;
  };
  /// What the row before said: columns hold the difference to it.
  struct message_before {
    std::uint64_t stream = 0, time = 0, frame = 0, number = 0;
    std::array<std::uint64_t, 2> offset{};                    // by side
    std::array<std::array<std::uint64_t, 3>, 32> by_kind{};   // tag, tagged offset, sequence; by operation and side
    std::array<std::array<std::uint64_t, 4>, 2> by_reader{};  // source and sink: tag, offset
  };
  struct fpdu_before {
    std::uint64_t stream = 0, number = 0, time = 0, frame = 0;
    std::array<std::uint64_t, 2> offset{}, position{};  // by side
  };
  struct problem_before {
    std::uint64_t stream = 0, time = 0, frame = 0;
  };
  /// A row of the table, and what is to be known of a stream meanwhile.
  struct stream_record {
    std::string client;
    std::string server;
    found_by how = found_by::startup;
    std::optional<agreement> agreed;
    bool rejected = false;
    bool crc_used = false;
    std::uint64_t fpdus = 0, messages = 0, problems = 0, notes = 0, lost = 0;
    std::array<std::array<std::uint64_t, 2>, 16> octets{};  // by operation and side
    std::int64_t first = 0, last = 0;
    std::uint64_t highest = 0;  // message number seen
    std::array<crc_state, 2> crc{};
  };

  stream_record* record(const place& at);
  std::uint64_t since(std::int64_t time);
  /// The columns that start-up frames and messages have alike.
  void begin_row(const place& at, frame_ref first, std::uint64_t kind, std::uint64_t number, std::uint64_t length);
  void end_row(std::string_view text);
  void add_problem(const place& at, std::string_view rule, std::string_view text, bool note);
  void flush_block();
  void write_streams();

  page_file file_;
  event_sink& next_;
  html_limits limits_;
  message_columns messages_;
  message_before message_before_;
  fpdu_columns fpdus_;
  fpdu_before fpdu_before_;
  problem_columns problems_;
  problem_before problem_before_;
  std::uint64_t messages_kept_ = 0, messages_left_ = 0, fpdus_kept_ = 0, fpdus_left_ = 0, problems_kept_ = 0,
                problems_left_ = 0, streams_left_ = 0;
  std::optional<std::int64_t> origin_;
  std::unordered_map<std::uint64_t, stream_record> streams_;
  std::vector<std::uint64_t> order_;  // of streams_
};

}  // namespace iwarp::dump
