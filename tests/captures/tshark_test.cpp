// Wireshark's dissectors as a second opinion on every fixture: the same FPDUs in the same frames with the same fields,
// and the same octets of each rebuilt TCP stream. Known gaps of the dissectors do not touch these captures: they show
// the enhanced data as private data, and short Sends may be taken for RPC-over-RDMA, which is switched off, as is NVMe
// over TCP, which takes every connection with port 4420 (field fault B232).
#include "tests/captures/events.hpp"
#include "tests/captures/fixtures.hpp"
#include "tests/support/hex.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace iwarp::captures {
namespace {

bool have_tshark() { return std::system("command -v tshark >/dev/null 2>&1") == 0; }

/// Standard output of a command, by lines.
std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  EXPECT_NE(pipe, nullptr) << command;
  std::string text;
  std::array<char, 65536> block{};
  while (pipe) {
    const std::size_t n = std::fread(block.data(), 1, block.size(), pipe.get());
    if (n == 0) break;
    text.append(block.data(), n);
  }
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{{}};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// -n: no names for addresses. Errors of tshark show as missing lines; its note about running as root is of no use.
std::string tshark(const fixture& f, const std::string& rest) {
  return fmt::format(
      "tshark -n -r '{}' --disable-protocol rpcordma --disable-protocol nvme-tcp -o tcp.reassemble_out_of_order:TRUE "
      "{} 2>/dev/null",
      fixture_path(f, ".pcap").string(), rest);
}

/// One frame's row: each column holds the values of all FPDUs of the frame that have the field, in order.
class row {
 public:
  row(const std::vector<std::string>& names, const std::string& line) {
    const auto cells = split(line, '\t');
    for (std::size_t i = 0; i < names.size() && i < cells.size(); ++i) {
      if (!cells[i].empty()) values_[names[i]] = split(cells[i], ',');
    }
  }
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  /// The next value of the column, or nothing; hexadecimal and decimal are both understood.
  std::string text(const std::string& name) {
    auto& column = values_[name];
    auto& used = used_[name];
    return used < column.size() ? column[used++] : "missing";
  }
  std::uint64_t number(const std::string& name) {
    const std::string value = text(name);
    EXPECT_NE(value, "missing") << name;
    return std::strtoull(value.c_str(), nullptr, 0);
  }
  /// Columns that have values nobody asked for.
  [[nodiscard]] std::string left_over() const {
    std::string names;
    for (const auto& [name, column] : values_) {
      const auto used = used_.find(name);
      if (name.starts_with("iwarp") && (used == used_.end() ? 0 : used->second) != column.size()) names += name + " ";
    }
    return names;
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::map<std::string, std::size_t> used_;
};

const std::vector<std::string> columns = {"frame.number",
                                          "tcp.stream",
                                          "ip.src",
                                          "ipv6.src",
                                          "tcp.srcport",
                                          "iwarp_mpa.key.req",
                                          "iwarp_mpa.key.rep",
                                          "iwarp_mpa.marker_flag",
                                          "iwarp_mpa.crc_flag",
                                          "iwarp_mpa.rej_flag",
                                          "iwarp_mpa.res",
                                          "iwarp_mpa.rev",
                                          "iwarp_mpa.pdlength",
                                          "iwarp_mpa.privatedata",
                                          "iwarp_mpa.ulpdulength",
                                          "iwarp_ddp.tagged_flag",
                                          "iwarp_ddp.last_flag",
                                          "iwarp_ddp.dv",
                                          "iwarp_ddp.stag",
                                          "iwarp_ddp.tagged_offset",
                                          "iwarp_ddp.qn",
                                          "iwarp_ddp.msn",
                                          "iwarp_ddp.mo",
                                          "iwarp_rdma.version",
                                          "iwarp_rdma.opcode",
                                          "iwarp_rdma.sinkstag",
                                          "iwarp_rdma.sinkto",
                                          "iwarp_rdma.rdmardsz",
                                          "iwarp_rdma.srcstag",
                                          "iwarp_rdma.srcto"};

void compare(const startup_event& e, row& theirs) {
  const mpa::startup_header& h = e.frame.header;
  const bool request = h.kind == mpa::frame_kind::request;
  EXPECT_EQ(theirs.text(request ? "iwarp_mpa.key.req" : "iwarp_mpa.key.rep"),
            test_support::to_hex(as_const_bytes(request ? "MPA ID Req Frame" : "MPA ID Rep Frame", 16)));
  EXPECT_EQ(theirs.number("iwarp_mpa.marker_flag"), h.markers ? 1u : 0u);
  EXPECT_EQ(theirs.number("iwarp_mpa.crc_flag"), h.crc ? 1u : 0u);
  EXPECT_EQ(theirs.number("iwarp_mpa.rej_flag"), h.rejected ? 1u : 0u);
  EXPECT_EQ(theirs.number("iwarp_mpa.res"), h.enhanced ? 0x10u : 0u);  // S is a reserved bit to the dissector
  EXPECT_EQ(theirs.number("iwarp_mpa.rev"), h.revision);
  EXPECT_EQ(theirs.number("iwarp_mpa.pdlength"), h.private_data_length);
  std::string private_data;
  if (e.frame.enhanced) {
    std::array<std::byte, mpa::enhanced_data_size> octets{};
    e.frame.enhanced->emit(octets);
    private_data = test_support::to_hex(octets);
  }
  private_data += test_support::to_hex(e.frame.private_data());
  if (!private_data.empty()) {
    EXPECT_EQ(theirs.text("iwarp_mpa.privatedata"), private_data);
  }
}

void compare(const fpdu_event& e, row& theirs) {
  EXPECT_EQ(theirs.number("iwarp_mpa.ulpdulength"), e.ulpdu_length);
  EXPECT_EQ(theirs.number("iwarp_ddp.dv"), ddp::version);
  EXPECT_EQ(theirs.number("iwarp_rdma.version"), 1u);
  EXPECT_EQ(theirs.number("iwarp_rdma.opcode"), static_cast<std::uint64_t>(e.op));
  if (const auto* t = std::get_if<ddp::tagged_header>(&e.header)) {
    EXPECT_EQ(theirs.number("iwarp_ddp.tagged_flag"), 1u);
    EXPECT_EQ(theirs.number("iwarp_ddp.last_flag"), t->last ? 1u : 0u);
    EXPECT_EQ(theirs.number("iwarp_ddp.stag"), t->stag.value);
    EXPECT_EQ(theirs.number("iwarp_ddp.tagged_offset"), t->offset);
  } else {
    const auto& u = std::get<ddp::untagged_header>(e.header);
    EXPECT_EQ(theirs.number("iwarp_ddp.tagged_flag"), 0u);
    EXPECT_EQ(theirs.number("iwarp_ddp.last_flag"), u.last ? 1u : 0u);
    EXPECT_EQ(theirs.number("iwarp_ddp.qn"), u.queue);
    EXPECT_EQ(theirs.number("iwarp_ddp.msn"), u.sequence.value);
    EXPECT_EQ(theirs.number("iwarp_ddp.mo"), u.offset);
  }
  if (e.request) {
    EXPECT_EQ(theirs.number("iwarp_rdma.sinkstag"), e.request->sink.value);
    EXPECT_EQ(theirs.number("iwarp_rdma.sinkto"), e.request->sink_offset);
    EXPECT_EQ(theirs.number("iwarp_rdma.rdmardsz"), e.request->size);
    EXPECT_EQ(theirs.number("iwarp_rdma.srcstag"), e.request->source.value);
    EXPECT_EQ(theirs.number("iwarp_rdma.srcto"), e.request->source_offset);
  }
}
void compare(const error_event& e, row&) { ADD_FAILURE() << e.error.message(); }

class Wireshark : public testing::TestWithParam<fixture> {
 protected:
  void SetUp() override {
    if (!have_tshark()) GTEST_SKIP() << "tshark is not installed (Debian package tshark)";
  }
};

TEST_P(Wireshark, ReadsTheSameFpdusWithTheSameFields) {
  std::string command = "-Y iwarp_mpa -T fields -E occurrence=a -E aggregator=,";
  for (const std::string& c : columns) command += " -e " + c;
  std::map<std::uint64_t, row> rows;  // by frame number
  for (const std::string& line : lines_of(tshark(GetParam(), command))) {
    row r(columns, line);
    const std::uint64_t frame = r.number("frame.number");
    rows.emplace(frame, std::move(r));
  }
  ASSERT_FALSE(rows.empty());
  std::size_t number = 0;
  for (const capture::tcp_stream& s : load(GetParam())) {
    const stream_events ours = decode(s);
    for (const event& e : ours.events) {
      SCOPED_TRACE(testing::Message() << "frame " << e.frame_index);
      const auto theirs = rows.find(e.frame_index);
      ASSERT_NE(theirs, rows.end()) << "Wireshark sees no iWARP in this frame";
      std::visit([&](const auto& what) { compare(what, theirs->second); }, e.what);
    }
    ++number;
  }
  EXPECT_GT(number, 0u);
  for (const auto& [frame, r] : rows) EXPECT_EQ(r.left_over(), "") << "only Wireshark sees these, in frame " << frame;
}

// "Follow TCP stream": an independent reassembly of both directions.
TEST_P(Wireshark, RebuildsTheSameOctets) {
  const auto streams = load(GetParam());
  std::string command = "-q";
  for (std::size_t i = 0; i < streams.size(); ++i) command += fmt::format(" -z follow,tcp,raw,{}", i);
  std::size_t at = 0;
  std::size_t found = 0;
  const auto lines = lines_of(tshark(GetParam(), command));
  std::map<std::string, const capture::tcp_stream*> by_nodes;
  for (const capture::tcp_stream& s : streams) by_nodes[to_string(s.client) + " " + to_string(s.server)] = &s;
  while (at < lines.size()) {
    if (!lines[at].starts_with("Node 0: ")) {
      ++at;
      continue;
    }
    ASSERT_LT(at + 1, lines.size());
    const std::string nodes = lines[at].substr(8) + " " + lines[at + 1].substr(8);  // written as we write them
    ASSERT_TRUE(by_nodes.contains(nodes)) << nodes;
    const capture::tcp_stream& ours = *by_nodes[nodes];
    std::string to_server;
    std::string to_client;  // its lines are indented
    for (at += 2; at < lines.size() && !lines[at].starts_with("==="); ++at) {
      if (lines[at].starts_with('\t')) {
        to_client += lines[at].substr(1);
      } else {
        to_server += lines[at];
      }
    }
    EXPECT_EQ(to_server, test_support::to_hex(ours.to_server.octets));
    EXPECT_EQ(to_client, test_support::to_hex(ours.to_client.octets));
    ++found;
  }
  EXPECT_EQ(found, streams.size());
}

INSTANTIATE_TEST_SUITE_P(Siw, Wireshark, testing::ValuesIn(fixtures),
                         [](const auto& param) { return test_name(param.param); });

}  // namespace
}  // namespace iwarp::captures
