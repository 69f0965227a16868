#include <array>

#include "tests/interop/matrix/cells.hpp"
#include "tests/interop/matrix/layout.hpp"

namespace iwarp::interop {
namespace {

struct depths {
  std::uint16_t asked;  // ORD of the side that reads
  std::uint16_t held;   // IRD of the side that is read
};
constexpr std::array<depths, 6> tried{{{1, 1}, {16, 16}, {128, 128}, {128, 16}, {16, 128}, {128, 1}}};
constexpr std::uint32_t reads = 150;
constexpr std::uint32_t size = 4096;

/// More Reads than may be outstanding, and a Send behind them that is fenced: it must not be there before their data.
std::string read_many(party& connector, party& listener, bool connector_reads, const depths& depth) {
  party& from = connector_reads ? connector : listener;
  party& to = connector_reads ? listener : connector;
  connection_plan plan{};
  connection_wishes& reader = connector_reads ? plan.connector : plan.listener;
  connection_wishes& read = connector_reads ? plan.listener : plan.connector;
  reader.ord = depth.asked;
  reader.ird = 1;
  read.ird = depth.held;
  read.ord = 1;
  const connected how = establish(connector, listener, plan);
  send_first(connector);

  const layout sink{.region = from.sink().index, .at = 0, .stride = stride_for(size), .count = reads, .size = size};
  layout source = sink;
  source.region = to.source().index;
  to->fill(source, 7);
  const layout notice{.region = to.sink().index, .at = region_size - 64};
  require(to->post_receive({.local = notice}).empty(), to.name() + ": posting a receive");
  std::string problem = from->post_send({.op = operation::read,
                                         .local = sink,
                                         .remote_key = to.source().key,
                                         .remote_at = to.source().address,
                                         .remote_stride = source.stride});
  require(problem.empty(), from.name() + ", posting Reads: " + problem);
  problem = from->post_send({.op = operation::send, .first_id = reads, .fence = true, .local = {.pieces = 0}});
  require(problem.empty(), from.name() + ", posting a fenced Send: " + problem);
  const auto got = to->wait_completions(1);
  require(got.size() == 1 && got[0].status == "success", to.name() + ": no Send behind the Reads");
  const auto done = from->wait_completions(reads + 1);
  require(done.size() == reads + 1, from.name() + ": " + std::to_string(done.size()) + " completions");
  for (std::size_t i = 0; i < done.size(); ++i) {
    require(done[i].id == i && done[i].status == "success",
            from.name() + ": request " + std::to_string(done[i].id) + ": " + done[i].status);
  }
  const std::string wrong = from->verify(sink, 7, 0, span_of(sink));
  require(wrong.empty(), from.name() + ": " + wrong);

  const event& mine = connector_reads ? how.at_connector : how.at_listener;
  const event& theirs = connector_reads ? how.at_listener : how.at_connector;
  std::string note;
  if (!from.is_siw()) {
    // A responder, siw or ours, holds as many Reads as the initiator asks for, up to 128 (protocol.md 6.3; RFC 6581
    // s9.1).
    const int most = connector_reads ? depth.asked : std::min(depth.asked, depth.held);
    require(mine.ord == most, from.name() + ": ORD " + std::to_string(mine.ord));
    note = "our ORD " + std::to_string(mine.ord);
  }
  if (!to.is_siw()) {
    require(theirs.ird >= 0, to.name() + ": IRD");
    note += (note.empty() ? "" : ", ") + ("IRD of the side that is read " + std::to_string(theirs.ird));
  }
  disconnect(from, to);
  return note;
}

}  // namespace

void depth_cells(party& ours, party& peer, report& out) {
  for (const bool ours_connects : {true, false}) {
    party& connector = ours_connects ? ours : peer;
    party& listener = ours_connects ? peer : ours;
    for (const bool connector_reads : {true, false}) {
      for (const depths& depth : tried) {
        const cell which{
            .group = "read depths",
            .op = "150 Reads, ORD " + std::to_string(depth.asked) + " towards IRD " + std::to_string(depth.held),
            .direction = connector_reads ? arrow(connector, listener) : arrow(listener, connector),
            .connector = connector.name(),
            .size = size};
        if (!out.wants(which)) continue;
        if (!out.lists()) drop(ours, peer);
        const bool good = out.run(which, [&] { return read_many(connector, listener, connector_reads, depth); });
        if (!good) ours->poison(ours.sink(), 0, region_size), peer->poison(peer.sink(), 0, region_size);
      }
    }
  }
  if (!out.lists()) drop(ours, peer);
}

}  // namespace iwarp::interop
