#include <array>
#include <set>

#include "mpa/error.hpp"
#include "rdmap/error.hpp"
#include "tests/interop/matrix/cells.hpp"
#include "tests/interop/matrix/layout.hpp"

namespace iwarp::interop {
namespace {

constexpr std::uint64_t receive_id = 1u << 20;

std::string octets(std::size_t count, char first) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += static_cast<char>(first + static_cast<char>(i));
  return all;
}

std::string with_private_data(party& connector, party& listener, std::size_t size) {
  connection_plan plan{};
  plan.connector.private_data = octets(size, 'a');
  plan.listener.private_data = octets(size, 'A');
  const connected how = establish(connector, listener, plan);
  require(how.request.private_data == to_hex(plan.connector.private_data),
          "the Request brought " + how.request.private_data);
  require(how.at_connector.private_data == to_hex(plan.listener.private_data),
          "the Reply brought " + how.at_connector.private_data);
  disconnect(connector, listener);
  return {};
}

std::string rejected(party& connector, party& listener, std::size_t size) {
  const std::string why = octets(size, 'r');
  ask_for_connection(connector, listener, {});
  listener->reject(why);
  const event e = connector->wait_event();
  require_kind(e, "rejected", connector);
  require(e.private_data == to_hex(why), "the Reply brought " + e.private_data);
  return connector.is_siw() ? "status " + e.reason : "";
}

/// What is going on when a connection ends.
enum class scene { idle, receives, own_sends, peers_sends, own_reads, peers_reads };
struct named_scene {
  scene what;
  const char* name;
};
constexpr std::array<named_scene, 6> scenes{{{scene::idle, "idle"},
                                             {scene::receives, "receives posted"},
                                             {scene::own_sends, "own Writes in flight"},
                                             {scene::peers_sends, "the peer's Writes in flight"},
                                             {scene::own_reads, "own Reads in flight"},
                                             {scene::peers_reads, "the peer's Reads in flight"}}};

enum class ending { disconnect, to_error, destroy, kill };
struct named_ending {
  ending how;
  const char* name;
};
constexpr std::array<named_ending, 4> endings{{{ending::disconnect, "disconnect"},
                                               {ending::to_error, "queue pair to error"},
                                               {ending::destroy, "queue pair destroyed"},
                                               {ending::kill, "process killed"}}};

constexpr std::uint32_t receives = 3;
constexpr std::uint32_t big_requests = 8;

/// Posts what the scene wants. How many requests each side has outstanding.
std::pair<std::size_t, std::size_t> set(scene what, party& by, party& other) {
  std::size_t of_by = 0;
  std::size_t of_other = 0;
  if (what != scene::idle) {
    for (auto [side, count] : {std::pair{&by, &of_by}, {&other, &of_other}}) {
      const layout where{.region = side->sink().index, .stride = 64, .count = receives, .size = 64};
      require(side->end().post_receive({.first_id = receive_id, .local = where}).empty(),
              side->name() + ", posting receives");
      *count += receives;
    }
  }
  const auto move = [](party& from, party& to, operation op) {
    const layout local{.region = (op == operation::read ? from.sink() : from.source()).index,
                       .stride = 1 << 20,
                       .count = big_requests,
                       .size = 1 << 20};
    const region& remote = op == operation::read ? to.source() : to.sink();
    const std::string problem = from->post_send(
        {.op = op, .local = local, .remote_key = remote.key, .remote_at = remote.address, .remote_stride = 1 << 20});
    require(problem.empty(), from.name() + ", posting: " + problem);
  };
  switch (what) {
    case scene::idle:
    case scene::receives:
      break;
    case scene::own_sends:
      move(by, other, operation::write);
      of_by += big_requests;
      break;
    case scene::peers_sends:
      move(other, by, operation::write);
      of_other += big_requests;
      break;
    case scene::own_reads:
      move(by, other, operation::read);
      of_by += big_requests;
      break;
    case scene::peers_reads:
      move(other, by, operation::read);
      of_other += big_requests;
      break;
  }
  return {of_by, of_other};
}

/// Every request has completed once; "9 flushed, 2 success". siw may keep what it owes (see error_cells.cpp).
std::string settle(party& where, std::size_t outstanding, int successes = 0) {
  const auto all = where->wait_completions(outstanding, milliseconds(where.is_siw() ? 50 : 3000));
  std::set<std::uint64_t> ids;
  std::map<std::string, int> statuses;
  for (const completion& c : all) {
    require(ids.insert(c.id).second, where.name() + ": request " + std::to_string(c.id) + " completed twice");
    ++statuses[c.status];
  }
  std::string text;
  for (const auto& [status, count] : statuses)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  if (all.size() < outstanding) {
    require(where.is_siw(),
            where.name() + ": " + std::to_string(outstanding - all.size()) + " requests never completed");
    text += (text.empty() ? "" : ", ") + std::to_string(outstanding - all.size()) + " never completed";
  }
  for (const auto& [status, count] : statuses) {
    const bool fine = status == "success" || status == "flushed" ||
                      (status == "remote_operation" && count == 1);  // the Read that a Terminate names
    require(fine || where.is_siw(), where.name() + ": completions " + text);
  }
  require(statuses["success"] >= successes, where.name() + ": completions " + text);
  return text.empty() ? "nothing outstanding" : text;
}

std::string why(const event& e, party& where) {
  std::string text = e.kind;
  if (!e.sent.empty()) text += ", sent Terminate " + e.sent;
  if (!e.got.empty()) text += ", got Terminate " + (e.got_swapped.empty() ? e.got : e.got_swapped + " swapped");
  if (e.sent.empty() && e.got.empty() && !e.reason.empty()) text += (where.is_siw() ? ", status " : ", ") + e.reason;
  return text;
}

/// What our stack, at the other end, says of it.
void require_reason(const event& told, const party& other, bool by_siw, scene what, ending how) {
  const bool quiet = what == scene::idle || what == scene::receives;
  std::set<std::string> fine;
  // siw ends every connection by FIN (protocol.md 6.8), the kernel those of a process that dies; our stack resets it,
  // but for disconnect().
  if (how == ending::disconnect || how == ending::kill || by_siw) {
    fine.insert("");
  } else {
    fine.insert(make_error_code(mpa::errc::tcp_lost).message());
  }
  // A process that dies before it has read everything resets the connection.
  if (how == ending::kill && !by_siw) fine.insert(make_error_code(mpa::errc::tcp_lost).message());
  if (!quiet) {
    // FIN between two messages, between two FPDUs of one, or within one; what is answered then is met with a reset.
    fine.insert(make_error_code(mpa::errc::tcp_lost).message());
    fine.insert(make_error_code(rdmap::errc::peer_closed_with_work).message());
  }
  require(fine.contains(told.reason), other.name() + ": the end is reported as \"" + told.reason + "\"");
}

std::string end_connection(party& by, party& other, bool by_connects, scene what, ending how) {
  party& connector = by_connects ? by : other;
  party& listener = by_connects ? other : by;
  establish(connector, listener, {});
  send_first(connector);
  const auto [of_by, of_other] = set(what, by, other);
  switch (how) {
    case ending::disconnect:
      by->disconnect();
      break;
    case ending::to_error:
      by->abort();
      break;
    case ending::destroy:
      by->close();
      break;
    case ending::kill:
      by->kill();
      by.forget();
      break;
  }
  const event told = other->wait_event();
  require_kind(told, "disconnected", other);
  std::string note = other.name() + ": " + why(told, other) + "; " + settle(other, of_other);
  if (how == ending::disconnect || how == ending::to_error) {
    // disconnect() of our stack carries out what was posted before it.
    const bool all_done =
        how == ending::disconnect && !by.is_siw() && (what == scene::own_sends || what == scene::own_reads);
    const event own = by->wait_event();
    require_kind(own, "disconnected", by);
    note += "; " + by.name() + ": " + why(own, by) + "; " + settle(by, of_by, all_done ? big_requests : 0);
  }
  if (!other.is_siw()) require_reason(told, other, by.is_siw(), what, how);
  drop(by, other);
  return note;
}

}  // namespace

void connection_cells(party& ours, party& peer, report& out) {
  const auto run = [&](const cell& which, const std::function<std::string()>& body) {
    if (!out.wants(which)) return;
    if (!out.run(which, body)) drop(ours, peer);
    if (!out.lists()) drop(ours, peer);
  };
  for (const bool ours_connects : {true, false}) {
    party& connector = ours_connects ? ours : peer;
    party& listener = ours_connects ? peer : ours;
    for (const std::size_t size : {0u, 1u, 251u}) {
      const std::string text = std::to_string(size) + " octets of private data";
      run({.group = "connection", .op = text + " in Request and Reply", .direction = arrow(connector, listener)},
          [&] { return with_private_data(connector, listener, size); });
      run({.group = "connection",
           .op = "rejected with " + text,
           .direction = arrow(connector, listener),
           .expected = "rejected"},
          [&] { return rejected(connector, listener, size); });
    }
  }
  for (const bool ours_ends : {true, false}) {
    party& by = ours_ends ? ours : peer;
    party& other = ours_ends ? peer : ours;
    for (const bool by_connects : {true, false}) {
      for (const named_ending& how : endings) {
        for (const named_scene& what : scenes) {
          run({.group = "ending",
               .op = std::string(how.name) + ", " + what.name,
               .direction = arrow(by, other),
               .connector = (by_connects ? by : other).name(),
               .expected = "disconnected at both, every request completes once"},
              [&] { return end_connection(by, other, by_connects, what.what, how.how); });
        }
      }
    }
  }
}

}  // namespace iwarp::interop
