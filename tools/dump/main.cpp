// iwarp-dump: what iWARP peers said, read from a capture; whether they kept the rules.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/dump/analyser.hpp"
#include "tools/dump/capture_file.hpp"
#include "tools/dump/extractor.hpp"
#include "tools/dump/html_writer.hpp"
#include "tools/dump/json_writer.hpp"
#include "tools/dump/link_layer.hpp"
#include "tools/dump/replay_script.hpp"
#include "tools/dump/replayer.hpp"
#include "tools/dump/text_writer.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::dump;

/// Every packet of the capture to the sink. What damages the file is thrown once all that could be read is told.
void read_capture(const std::string& path, const std::string& filter, const analyser_options& options, event_sink& sink,
                  output_buffer& buffer) {
  capture_file capture(path, filter);
  if (!link_type_known(capture.link_type())) {
    throw tools::failure(fmt::format("{}: link layer {} is not supported", path, link_type_name(capture.link_type())));
  }
  analyser analysis(options, sink);
  packet p;
  while (capture.next(p)) analysis.add(p);
  analysis.finish();
  buffer.flush();
  if (!capture.damage().empty()) throw tools::failure(capture.damage());
}

/// Lets the summary through and nothing else.
class summary_line final : public event_sink {
 public:
  explicit summary_line(event_sink& next) noexcept : next_(next) {}
  using event_sink::on;
  void on(const summary_event& e) override { next_.on(e); }

 private:
  event_sink& next_;
};

int program(int argc, char** argv) {
  CLI::App app("Decodes and checks the iWARP connections in a capture (pcap or pcapng, also compressed).",
               "iwarp-dump");
  std::string path;
  std::string filter;
  std::vector<std::uint16_t> ports;
  bool json = false;
  text_options text;
  std::string page;
  std::string extract;
  replay_options live;
  std::uint64_t timeout = 5;
  std::optional<std::uint64_t> stream;
  app.add_option("FILE", path, "The capture; - for standard input")->required();
  app.add_flag("-v,--verbose", text.fpdus, "A line for every FPDU with all its fields");
  app.add_flag("-x,--hex", text.hex, "The octets of every FPDU and start-up frame");
  app.add_flag("--json", json, "One JSON object per line: mpa, fpdu, message, problem, summary");
  app.add_option("--html", page, "Write one page with tables, a ladder diagram and plots, instead of lines")
      ->type_name("FILE")
      ->excludes("--json", "--verbose", "--hex");
  app.add_option("--port", ports, "Only connections with this TCP port, and those are iWARP. May be repeated")
      ->type_name("N");
  app.add_option("--filter", filter, "Only packets that this expression of pcap-filter(7) lets pass")->type_name("BPF");
  app.add_option("--extract", extract, "Write the octets of every message to DIR/STREAM-MESSAGE-OPERATION.bin")
      ->type_name("DIR");
  tools::add_address(app, "--replay", live.where, 7174,
                     "Play the initiator of a stream to the peer at ADDR (default\n"
                     "port: 7174), show what is said, compare what comes back");
  app.add_option("--stream", stream, "Replay this one. Default: the first with a Request")->type_name("N");
  tools::add_number(app, "--timeout", timeout, 1, 3600,
                    "In a replay: wait so long for each answer, seconds. Default: 5");
  tools::prepare(app,
                 "  iwarp-dump capture.pcap                   a line for every message, then a summary\n"
                 "  tcpdump -i eth0 -w - tcp | iwarp-dump -   as it happens\n"
                 "  iwarp-dump --json capture.pcapng.zst      for programs\n"
                 "  iwarp-dump --replay 192.0.2.1 ping.pcap   does a peer answer as the captured one did?\n");
  if (const auto code = tools::parse(app, argc, argv)) return *code;

  output_buffer buffer(STDOUT_FILENO);
  // Whoever watches packets as they come, or reads them through a pipe, wants each line when it is there.
  struct stat target {};
  buffer.at_once = path == "-" && ::fstat(STDOUT_FILENO, &target) == 0 &&
                   (isatty(STDOUT_FILENO) != 0 || S_ISFIFO(target.st_mode) || S_ISSOCK(target.st_mode));
  json_writer as_json(buffer);
  text_writer as_text(buffer, text);
  event_sink* sink = json ? static_cast<event_sink*>(&as_json) : &as_text;
  summary_line last_line(as_text);
  std::optional<html_writer> as_page;
  if (!page.empty()) sink = &as_page.emplace(page, tools::printable(path), last_line);
  std::optional<extractor> files;
  if (!extract.empty()) sink = &files.emplace(extract, *sink);

  const analyser_options options{.ports = {ports.begin(), ports.end()}, .limits = {}};
  if (live.where.port == 0) {
    read_capture(path, filter, options, *sink, buffer);
    return 0;
  }
  replay_script script(stream);
  read_capture(path, filter, options, script, buffer);
  live.patience = std::chrono::seconds(timeout);
  const std::vector<std::string> differences = replay(script, live, *sink);
  buffer.flush();
  for (const std::string& line : differences) fmt::print("differs: {}\n", line);
  std::fflush(stdout);
  if (!differences.empty()) {
    throw tools::failure(fmt::format("the peer answered otherwise than in the capture: {} difference{}",
                                     differences.size(), differences.size() == 1 ? "" : "s"));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("iwarp-dump", [&] { return program(argc, argv); });
}
