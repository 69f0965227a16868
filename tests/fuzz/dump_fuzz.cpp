// iwarp-dump over whole capture files: whatever they hold, it ends, and its memory stays bounded.
#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/fuzz/check.hpp"
#include "tools/common/failure.hpp"
#include "tools/dump/analyser.hpp"
#include "tools/dump/capture_file.hpp"
#include "tools/dump/json_writer.hpp"
#include "tools/dump/text_writer.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::dump;

/// Both writers, and sums that must agree.
struct both_writers final : event_sink {
  template <class Event>
  void tell(const Event& e) {
    json.on(e);
    text.on(e);
    // Nobody reads it, and nobody may keep it all.
    as_json.text().clear();
    as_text.text().clear();
  }
  void on(const stream_event& e) override { tell(e); }
  void on(const mpa_event& e) override { tell(e); }
  void on(const fpdu_event& e) override {
    FUZZ_CHECK(e.payload.size() <= e.payload_size);
    ++fpdus;
    tell(e);
  }
  void on(const message_event& e) override {
    ++messages;
    tell(e);
  }
  void on(const problem_event& e) override {
    ++problems;
    tell(e);
  }
  void on(const note_event& e) override { tell(e); }
  void on(const summary_event& e) override { tell(e); }

  output_buffer as_json{-1};
  output_buffer as_text{-1};
  json_writer json{as_json};
  text_writer text{as_text, {.fpdus = true, .hex = true}};
  std::uint64_t fpdus = 0;
  std::uint64_t messages = 0;
  std::uint64_t problems = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::FILE* stream = fmemopen(const_cast<std::uint8_t*>(data), size, "rb");
  FUZZ_CHECK(stream != nullptr);
  both_writers out;
  // Small bounds, so that an input of a few kilobytes reaches them.
  analyser_options options;
  options.limits = {
      .half_octets = 2048, .all_octets = 16384, .held_segments = 4, .settle_segments = 4, .connections = 4};
  try {
    capture_file file(stream, "input", "");
    analyser analysis(options, out);
    packet p;
    while (file.next(p)) {
      analysis.add(p);
      FUZZ_CHECK(analysis.memory_in_use() < std::size_t{64} << 20);
    }
    const summary_event sum = analysis.finish();
    FUZZ_CHECK(sum.fpdus == out.fpdus);
    FUZZ_CHECK(sum.messages == out.messages);
    FUZZ_CHECK(sum.problems == out.problems);
    FUZZ_CHECK(sum.streams <= sum.tcp_streams);
  } catch (const tools::failure&) {
    // Not a capture: said so.
  }
  return 0;
}
