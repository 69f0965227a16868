#include <functional>
#include <vector>

#include "ddp/error.hpp"
#include "mpa/error.hpp"
#include "rdmap/error.hpp"
#include "tests/interop/matrix/cells.hpp"
#include "tests/interop/matrix/layout.hpp"

namespace iwarp::interop {
namespace {

constexpr std::uint64_t receive_id = 1u << 20;
constexpr std::uint32_t size = 64;

/// What a case does: `from` acts, `to` is acted on. Regions that it makes at `to` go with the cell.
struct stage {
  party& from;
  party& to;
  std::vector<region> made;

  layout source() { return {.region = from.source().index, .size = size}; }
  region& add(const std::string& rights, bool stranger = false) {
    return made.emplace_back(to->add_region(4096, rights, stranger));
  }
  std::string write(std::uint32_t key, std::uint64_t at, std::uint32_t octets = size) {
    layout local = source();
    local.size = octets;
    return from->post_send({.op = operation::write, .local = local, .remote_key = key, .remote_at = at});
  }
  std::string read(std::uint32_t key, std::uint64_t at, std::uint32_t octets = size) {
    return from->post_send({.op = operation::read,
                            .local = {.region = from.sink().index, .size = octets},
                            .remote_key = key,
                            .remote_at = at});
  }
  std::string reach(operation op, std::uint32_t key, std::uint64_t at, std::uint32_t octets = size) {
    return op == operation::write ? write(key, at, octets) : read(key, at, octets);
  }
  std::string send(operation op = operation::send, std::uint32_t invalidate = 0) {
    return from->post_send({.op = op, .local = source(), .invalidate = invalidate});
  }
};

/// What must become of it, from protocol.md: table E (3.7) for our stack, section 6 for siw. Alternatives are joined by
/// "|". Statuses are those of the request under test and of the receive that was posted at `to`.
struct expectation {
  std::string ours_sends;   // Terminate of our stack as the one acted on; "works": no error at all
  std::string ours_reason;  // and what its event says
  std::string siw_sends;    // Terminate of siw, as we read it; "works"; "none": it closes without a word;
                            // "goes on": the receive fails and the connection stays
  std::string ours_receive = "flushed";
  std::string siw_receive = "flushed";
  std::string to_ours = "success";  // the request, of our stack towards our stack
  std::string to_siw = "success";   // of our stack towards siw
  // of siw towards our stack: a Terminate that comes while it is still sending makes it an error of its own
  std::string of_siw = "success|flushed|local_qp_operation";
};

enum class receives { one, short_one, none, bad_key };

struct error_case {
  std::string name;
  std::function<std::string(stage&)> act;
  expectation want;
  receives posted = receives::one;
  bool terminate_without_receive = false;
  bool from_ours = true;  // siw's users can do it as well
  bool from_siw = true;
  std::uint32_t requests = 1;
};

bool matches(const std::string& alternatives, const std::string& what) {
  return ("|" + alternatives + "|").find("|" + what + "|") != std::string::npos;
}
void expect(const std::string& alternatives, const std::string& what, const std::string& of) {
  require(matches(alternatives, what), of + " is \"" + what + "\" and not \"" + alternatives + "\"");
}

std::string terminate_read(const event& e) {
  if (e.got.empty()) return "none";
  return e.got_swapped.empty() ? e.got : e.got_swapped + " swapped";
}

std::string status_of(const std::vector<completion>& all, std::uint64_t id) {
  std::string found = "none";
  int count = 0;
  for (const completion& c : all) {
    if (c.id != id) continue;
    found = c.status;
    ++count;
  }
  return count > 1 ? "completed " + std::to_string(count) + " times" : found;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
  return text;
}

/// Everything that was seen, for the note.
struct outcome {
  std::string posting;
  std::string request;
  std::string receive;
  event at_from;
  event at_to;
  std::vector<std::string> asynchronous_from;
  std::vector<std::string> asynchronous_to;

  [[nodiscard]] std::string text(party& from, party& to) const {
    std::string all = "request: " + request + ", receive: " + receive;
    for (const auto& [side, e, events] :
         {std::tuple{&from, &at_from, &asynchronous_from}, {&to, &at_to, &asynchronous_to}}) {
      all += "; " + side->name() + ": " + e->kind;
      if (side->is_siw()) {
        if (!e->reason.empty()) all += " (status " + e->reason + ")";
      } else {
        if (!e->sent.empty()) all += ", sent Terminate " + e->sent;
        if (!e->got.empty()) all += ", got Terminate " + terminate_read(*e);
        if (e->sent.empty() && e->got.empty() && !e->reason.empty()) all += ", " + e->reason;
      }
      if (!events->empty()) all += ", " + joined(*events);
    }
    return all;
  }
};

void judge(const error_case& which, const outcome& seen, party& from, party& to) {
  require(seen.posting.empty(), from.name() + ", posting: " + seen.posting);
  const expectation& want = which.want;
  const std::string sends = to.is_siw() ? want.siw_sends : want.ours_sends;
  if (sends == "works") {
    expect("success", seen.request, "the request");
    return;
  }
  expect(from.is_siw() ? want.of_siw : to.is_siw() ? want.to_siw : want.to_ours, seen.request, "the request");
  if (sends == "goes on") {
    expect(want.siw_receive, seen.receive, "the receive");
    expect("none", seen.at_from.kind, from.name() + ", the event");
    expect("none", seen.at_to.kind, to.name() + ", the event");
    return;
  }
  if (which.posted != receives::none) {
    expect(to.is_siw() ? want.siw_receive : want.ours_receive, seen.receive, "the receive");
  }
  expect("disconnected", seen.at_from.kind, from.name() + ", the event");
  expect("disconnected", seen.at_to.kind, to.name() + ", the event");
  if (!to.is_siw()) {
    expect(want.ours_sends, seen.at_to.sent, to.name() + ", the Terminate sent");
    expect(want.ours_reason, seen.at_to.reason, to.name() + ", the reason");
  }
  if (!from.is_siw()) {
    expect(sends, terminate_read(seen.at_from), from.name() + ", the Terminate received");
    if (sends != "none") {
      expect(rdmap::make_error_code(rdmap::errc::terminated_by_peer).message(), seen.at_from.reason,
             from.name() + ", the reason");
    }
  }
}

std::string run_case(const error_case& which, party& from, party& to) {
  connection_plan plan{};
  plan.listener.terminate_without_receive = which.terminate_without_receive;
  stage scene{from, to, {}};
  establish(from, to, plan, [&] {
    layout where{.region = to.sink().index, .size = size};
    if (which.posted == receives::none) return;
    if (which.posted == receives::short_one) where.size = size / 2;
    if (which.posted == receives::bad_key) where.key = to.sink().key ^ 0x00FFFF00u;
    const std::string problem = to->post_receive({.first_id = receive_id, .local = where});
    require(problem.empty(), to.name() + ", posting a receive: " + problem);
  });
  outcome seen;
  const std::string sends = to.is_siw() ? which.want.siw_sends : which.want.ours_sends;
  try {
    seen.posting = which.act(scene);
    if (sends == "works") {
      const auto done = from->wait_completions(which.requests);
      seen.request = status_of(done, 0);
      if (done.size() < which.requests) seen.at_from = from->wait_event(milliseconds(100));
      seen.receive = "not used";
    } else {
      const milliseconds limit(sends == "goes on" ? 20 : 3000);
      seen.at_from = from->wait_event(limit);
      seen.at_to = to->wait_event(limit);
      seen.request = status_of(from->wait_completions(which.requests, milliseconds(1000)), 0);
      if (which.posted != receives::none) {
        // What siw does not flush is not waited for long.
        const milliseconds patience(to.is_siw() && which.want.siw_receive == "none" ? 20 : 1000);
        seen.receive = status_of(to->wait_completions(1, patience), receive_id);
      }
      if (sends == "goes on") disconnect(from, to);
    }
    seen.asynchronous_from = from->asynchronous_events();
    seen.asynchronous_to = to->asynchronous_events();
  } catch (...) {
    drop(from, to);
    throw;
  }
  drop(from, to);
  for (const region& r : scene.made) to->remove_region(r);
  const std::string text = seen.text(from, to);
  try {
    judge(which, seen, from, to);
  } catch (const failure& problem) {
    throw failure(std::string(problem.what()) + " [" + text + "]");
  }
  return text;
}

template <class Errc>
std::string says(Errc e) {
  return make_error_code(e).message();
}

/// Cases that a Write and a Read have in common, with what each is answered.
struct reach_case {
  std::string name;
  std::function<std::string(stage&, operation)> act;
  expectation write;
  expectation read;
  std::uint32_t requests = 1;
};

/// The STag of a region whose key both sides know to be invalid. 2 more requests when `from` did it.
std::uint32_t invalidated_key(stage& s) {
  region& r = s.add("wr");
  if (s.from.is_siw()) {  // `to` is our stack, which as responder waits for a first FPDU with all its requests
    require(s.from->post_send({.op = operation::write, .first_id = 77, .local = {.pieces = 0}}).empty(),
            "posting a Write");
    require(status_of(s.from->wait_completions(1), 77) == "success", "a Write of no octets");
    require(s.to->post_send(
                    {.op = operation::local_invalidate, .first_id = 77, .local = {.pieces = 0}, .invalidate = r.key})
                .empty(),
            "posting a local invalidate");
    require(status_of(s.to->wait_completions(1), 77) == "success", "the local invalidate");
  } else {
    require(
        s.from->post_send({.op = operation::send_invalidate, .first_id = 77, .local = s.source(), .invalidate = r.key})
            .empty(),
        "posting a Send with Invalidate");
    require(status_of(s.from->wait_completions(1), 77) == "success", "the Send with Invalidate");
    require(status_of(s.to->wait_completions(1), receive_id) == "success", "the receive of the Send with Invalidate");
    // Another receive in its place.
    require(s.to->post_receive({.first_id = receive_id, .local = {.region = s.to.sink().index, .size = size}}).empty(),
            "posting a receive");
  }
  return r.key;
}

std::vector<error_case> reach_cases() {
  using ddp::errc;
  const auto tagged = [](const char* ours, errc why, const char* siw) {
    return expectation{.ours_sends = ours, .ours_reason = says(why), .siw_sends = siw};
  };
  const auto source = [](const char* ours, rdmap::errc why, const char* siw) {
    return expectation{.ours_sends = ours,
                       .ours_reason = says(why),
                       .siw_sends = siw,
                       .siw_receive = "none",  // siw leaves its receive queue alone after a Read that it refuses
                       .to_ours = "remote_access",
                       .to_siw = "remote_access",
                       .of_siw = "flushed"};
  };
  const expectation bad_stag_write = tagged("1/1/00", errc::tagged_invalid_stag, "1/1/00 swapped");
  const expectation bad_stag_read = source("0/1/00", rdmap::errc::source_invalid_stag, "0/1/00 swapped");
  const expectation bounds_write = tagged("1/1/01", errc::tagged_base_or_bounds, "1/1/01 swapped");
  const expectation bounds_read = source("0/1/01", rdmap::errc::source_base_or_bounds, "0/1/01 swapped");
  const expectation works{.ours_sends = "works", .ours_reason = "", .siw_sends = "works"};

  expectation wrapped_read = source("0/1/04", rdmap::errc::source_offset_wrap, "none");
  wrapped_read.to_siw = "flushed";

  const std::vector<reach_case> both{
      {"unknown STag",
       [](stage& s, operation op) { return s.reach(op, s.to.sink().key ^ 0x00A5A500u, s.to.sink().address); },
       bad_stag_write, bad_stag_read},
      {"wrong 8-bit key of a known STag",
       [](stage& s, operation op) {
         const region r = s.add("wr");
         return s.reach(op, r.key ^ 0x55u, r.address);
       },
       bad_stag_write, bad_stag_read},
      {"STag of a deregistered region",
       [](stage& s, operation op) {
         const region gone = s.add("wr");
         s.to->remove_region(gone);
         s.made.pop_back();
         return s.reach(op, gone.key, gone.address);
       },
       bad_stag_write, bad_stag_read},
      {"STag that was invalidated",
       [](stage& s, operation op) {
         const std::uint32_t key = invalidated_key(s);
         return s.reach(op, key, s.made.back().address);
       },
       bad_stag_write, bad_stag_read},
      {"begins where the region ends",
       [](stage& s, operation op) {
         const region r = s.add("wr");
         return s.reach(op, r.key, r.address + 4096);
       },
       bounds_write, bounds_read},
      {"ends behind the region",
       [](stage& s, operation op) {
         const region r = s.add("wr");
         return s.reach(op, r.key, r.address + 4096 - size + 1);
       },
       bounds_write, bounds_read},
      {"begins before the region",
       [](stage& s, operation op) {
         const region r = s.add("wr");
         return s.reach(op, r.key, r.address - 1);
       },
       bounds_write, bounds_read},
      {"longer than the region",
       [](stage& s, operation op) {
         const region r = s.add("wr");
         return s.reach(op, r.key, r.address, 65536);
       },
       bounds_write, bounds_read},
      {"offset and length wrap",
       [](stage& s, operation op) { return s.reach(op, s.add("wr").key, ~std::uint64_t{0} - 15); },
       // siw does not see the wrap and fails later (protocol.md 6.5), for a Read without a word.
       tagged("1/1/03", errc::tagged_offset_wrap, "1/0/00 swapped"), wrapped_read},
      {"region without the right",
       [](stage& s, operation op) {
         const region& r = s.add(op == operation::write ? "r" : "w");
         return s.reach(op, r.key, r.address);
       },
       // siw: no code of its own for a Write; for a Read it never looks at the right (protocol.md 6.4, 6.5).
       tagged("1/1/02", errc::tagged_no_access, "1/1/00 swapped"),
       source("0/1/02", rdmap::errc::source_no_access, "works")},
      {"region of another protection domain",
       [](stage& s, operation op) {
         const region r = s.add("wr", true);
         return s.reach(op, r.key, r.address);
       },
       tagged("1/1/02", errc::tagged_not_associated, "1/1/02 swapped"),
       source("0/1/03", rdmap::errc::source_not_associated, "0/1/03 swapped")},
      {"no octets, unknown STag",
       [](stage& s, operation op) { return s.reach(op, s.to.sink().key ^ 0x00A5A500u, 12345, 0); }, works, works},
  };
  std::vector<error_case> all;
  for (const reach_case& c : both) {
    for (const operation op : {operation::write, operation::read}) {
      const bool write = op == operation::write;
      all.push_back({.name = (write ? "Write, " : "Read, ") + c.name,
                     .act = [act = c.act, op](stage& s) { return act(s, op); },
                     .want = write ? c.write : c.read});
    }
  }
  return all;
}

std::vector<error_case> send_cases() {
  using rdmap::errc;
  const auto invalidate = [](const char* ours, errc why, const char* siw) {
    return expectation{.ours_sends = ours,
                       .ours_reason = says(why),
                       .siw_sends = siw,
                       .ours_receive = "remote_invalid_request",
                       .siw_receive = "remote_invalid_request",
                       .to_ours = "success|remote_access",
                       .to_siw = "success|remote_access|flushed"};
  };
  const auto no_buffer = says(ddp::errc::untagged_no_buffer);
  std::vector<error_case> all{
      {.name = "Send, longer than the receive",
       .act = [](stage& s) { return s.send(); },
       .want = {.ours_sends = "1/2/05",
                .ours_reason = says(ddp::errc::untagged_too_long),
                .siw_sends = "1/2/02 swapped",
                .ours_receive = "local_length",
                .siw_receive = "local_length",
                .to_ours = "success|remote_invalid_request",
                .to_siw = "success|remote_invalid_request"},
       .posted = receives::short_one},
      {.name = "Send, no receive posted, terminate",
       .act = [](stage& s) { return s.send(); },
       .want = {.ours_sends = "1/2/02",
                .ours_reason = no_buffer,
                .siw_sends = "1/2/02 swapped",
                .to_ours = "success|remote_invalid_request",
                .to_siw = "success|remote_invalid_request"},
       .posted = receives::none,
       .terminate_without_receive = true},
      {.name = "Send, receive names an unknown local key",
       .act = [](stage& s) { return s.send(); },
       .want = {.ours_sends = "0/0/00",
                .ours_reason = says(errc::local_catastrophic),
                .siw_sends = "1/0/00 swapped",
                .ours_receive = "local_protection",
                .siw_receive = "general error"},
       .posted = receives::bad_key},
      {.name = "Send with Invalidate, unknown STag",
       .act = [](stage& s) { return s.send(operation::send_invalidate, s.to.sink().key ^ 0x00A5A500u); },
       .want = invalidate("0/1/00", errc::invalidate_invalid_stag, "goes on"),
       .from_siw = false},
      {.name = "Send with Invalidate, wrong 8-bit key of a known STag",
       .act = [](stage& s) { return s.send(operation::send_invalidate, s.add("wr").key ^ 0x55u); },
       .want = invalidate("0/1/00", errc::invalidate_invalid_stag, "works"),  // siw looks at the index alone
       .from_siw = false},
      {.name = "Send with Invalidate, region without remote rights",
       .act = [](stage& s) { return s.send(operation::send_invalidate, s.add("").key); },
       .want = invalidate("0/1/02", errc::invalidate_no_access, "works"),  // siw does not look at rights
       .from_siw = false},
      {.name = "Send with Invalidate, region of another protection domain",
       .act = [](stage& s) { return s.send(operation::send_invalidate, s.add("wr", true).key); },
       .want = invalidate("0/1/03", errc::invalidate_not_associated, "goes on"),
       .from_siw = false},
      {.name = "Send with Invalidate, posted by siw's users",  // STag 0 is on the wire, whatever they ask for
       .act = [](stage& s) { return s.send(operation::send_invalidate, s.add("wr").key); },
       .want = invalidate("0/1/09", errc::cannot_invalidate, "none"),
       .from_ours = false},
  };
  return all;
}

/// By default a peer that sends too early is held by TCP's window, and nothing is lost (design: receive shortage).
std::string hold_case(party& from, party& to) {
  establish(from, to, {});
  const layout source{.region = from.source().index, .size = size};
  from->fill(source, 99);
  require(from->post_send({.op = operation::send, .local = source}).empty(), from.name() + ", posting");
  const event early = to->wait_event(milliseconds(30));
  require(early.kind == "none", to.name() + ": event " + early.kind + " while the Send waits: " + early.text);
  const layout sink{.region = to.sink().index, .size = size};
  require(to->post_receive({.first_id = receive_id, .local = sink}).empty(), to.name() + ", posting");
  require(status_of(to->wait_completions(1), receive_id) == "success", to.name() + ": the held Send was not received");
  const std::string wrong = to->verify(sink, 99, 0, size);
  require(wrong.empty(), to.name() + ": " + wrong);
  disconnect(from, to);
  drop(from, to);
  return "held until a receive was posted";
}

/// The request itself names memory that its own side does not know: an error of the sender (table E, E37).
std::string local_case(party& from, party& to, operation op) {
  establish(from, to, {}, [&] {
    const layout where{.region = to.sink().index, .size = size};
    require(to->post_receive({.first_id = receive_id, .local = where}).empty(), to.name() + ", posting");
  });
  layout local{.region = from.source().index, .size = size, .key = from.source().key ^ 0x00A5A500u};
  if (op == operation::read) local.region = from.sink().index;
  const region& remote = op == operation::read ? to.source() : to.sink();
  const std::string problem =
      from->post_send({.op = op, .local = local, .remote_key = remote.key, .remote_at = remote.address});
  require(problem.empty(), from.name() + ", posting: " + problem);
  outcome seen;
  seen.at_from = from->wait_event(milliseconds(3000));
  seen.at_to = to->wait_event(milliseconds(3000));
  seen.request = status_of(from->wait_completions(1, milliseconds(1000)), 0);
  seen.receive = status_of(to->wait_completions(1, milliseconds(1000)), receive_id);
  seen.asynchronous_from = from->asynchronous_events();
  seen.asynchronous_to = to->asynchronous_events();
  drop(from, to);
  const std::string text = seen.text(from, to);
  try {
    // siw looks at the sink of a Read when the response is there, and does not call its other finds a protection error.
    const bool late = from.is_siw() && op == operation::read;
    expect(from.is_siw() && !late ? "local_qp_operation" : "local_protection", seen.request, "the request");
    expect("flushed", seen.receive, "the receive");
    expect("disconnected", seen.at_from.kind, from.name() + ", the event");
    expect("disconnected", seen.at_to.kind, to.name() + ", the event");
    if (!from.is_siw()) expect("0/0/00", seen.at_from.sent, from.name() + ", the Terminate sent");
    if (!to.is_siw())
      expect(late            ? "1/1/00 swapped"
             : from.is_siw() ? "0/0/FF"
                             : "0/0/00",
             terminate_read(seen.at_to), to.name() + ", the Terminate received");
  } catch (const failure& wrong) {
    throw failure(std::string(wrong.what()) + " [" + text + "]");
  }
  return text;
}

}  // namespace

void error_cells(party& ours, party& peer, report& out) {
  std::vector<error_case> all = reach_cases();
  for (error_case& c : send_cases()) all.push_back(std::move(c));
  for (const bool ours_acts : {true, false}) {
    party& from = ours_acts ? ours : peer;
    party& to = ours_acts ? peer : ours;
    for (const error_case& c : all) {
      if (from.is_siw() ? !c.from_siw : !c.from_ours) continue;
      std::string sends = to.is_siw() ? c.want.siw_sends : c.want.ours_sends;
      const cell which{.group = "errors",
                       .op = c.name,
                       .direction = arrow(from, to),
                       .crc = "on",
                       .expected = sends == "works"     ? "works"
                                   : sends == "none"    ? "the connection ends"
                                   : sends == "goes on" ? "the receive fails, the connection stays"
                                                        : "Terminate " + sends};
      if (!out.wants(which)) continue;
      if (!out.run(which, [&] { return run_case(c, from, to); })) drop(ours, peer);
      if (out.lists()) continue;
      ours->poison(ours.sink(), 0, 2 * 65536);
      peer->poison(peer.sink(), 0, 2 * 65536);
    }
    for (const auto& [op, name] :
         {std::pair{operation::send, "Send"}, {operation::write, "Write"}, {operation::read, "Read"}}) {
      const cell which{.group = "errors",
                       .op = std::string(name) + ", unknown key of its own memory",
                       .direction = arrow(from, to),
                       .expected = "the request fails: local_protection"};
      if (out.wants(which) && !out.run(which, [&] { return local_case(from, to, op); })) drop(ours, peer);
    }
    const cell held{.group = "errors", .op = "Send, no receive posted, held back", .direction = arrow(from, to)};
    if (!out.wants(held) || to.is_siw()) continue;
    if (!out.run(held, [&] { return hold_case(from, to); })) drop(ours, peer);
  }
}

}  // namespace iwarp::interop
