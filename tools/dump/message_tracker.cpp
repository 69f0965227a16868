#include "tools/dump/message_tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ddp/header.hpp"

namespace iwarp::dump {
namespace {

using rdmap::opcode;

constexpr std::uint8_t ddp_reserved = 0x3C;
constexpr std::uint8_t rdmap_reserved = 0x30;
constexpr std::size_t max_ulpdu = 64768;
constexpr std::size_t known_queues = 4;

std::uint8_t octet(const_bytes in, std::size_t at) noexcept { return std::to_integer<std::uint8_t>(in[at]); }

/// The one size, behind the DDP header, that the opcode allows; 0: any.
std::size_t fixed_size(opcode op) noexcept {
  switch (op) {
    case opcode::read_request:
      return rdmap::read_request_size;
    case opcode::immediate:
    case opcode::immediate_solicited:
      return rdmap::immediate_size;
    case opcode::atomic_request:
      return rdmap::atomic_request_size;
    case opcode::atomic_response:
      return rdmap::atomic_response_size;
    case opcode::write:
    case opcode::read_response:
    case opcode::send:
    case opcode::send_invalidate:
    case opcode::send_solicited:
    case opcode::send_solicited_invalidate:
    case opcode::terminate:
      return 0;
  }
  return 0;
}

/// The rule that such a message of one segment and fixed size keeps.
std::string_view size_rule(opcode op) noexcept {
  if (op == opcode::read_request) return "RDMAP-15";
  if (op == opcode::atomic_request) return "EXT-08";
  if (op == opcode::atomic_response) return "EXT-14";
  return "EXT-02";
}

/// `head` with DDP version 1, whatever it is: the fields behind it are to be shown.
std::array<std::byte, ddp::untagged_header_size> with_version(const_bytes head) noexcept {
  std::array<std::byte, ddp::untagged_header_size> copy{};
  std::ranges::copy(head.first(std::min(head.size(), copy.size())), copy.begin());
  copy[0] = (copy[0] & ~std::byte{ddp::version_mask}) | std::byte{ddp::version};
  return copy;
}

}  // namespace

bool message_tracker::continues(const fpdu_event& e, const open_message& m) noexcept {
  if (!m.active) return false;
  if (e.tagged) {
    if (e.tag != m.event.tag) return false;
    return !m.uncertain || e.tagged_offset >= m.next;
  }
  if (e.sequence != m.event.sequence) return false;
  return !m.uncertain || e.offset >= m.next;
}

message_tracker::open_message* message_tracker::slot_of(const fpdu_event& e) noexcept {
  if (!e.headers) return nullptr;
  if (e.tagged) return &tagged_[e.op == opcode::read_response ? 1 : 0];
  return e.queue < known_queues ? &untagged_[e.queue] : nullptr;
}

void message_tracker::describe(const fpdu_unit& unit, fpdu_event& e) {
  e.ulpdu_size = unit.ulpdu_size;
  const const_bytes in = unit.ulpdu;
  e.headers = false;
  continues_ = false;
  if (in.empty()) return;
  e.tagged = ddp::is_tagged(in[0]);
  const std::size_t header = e.tagged ? ddp::tagged_header_size : ddp::untagged_header_size;
  if (in.size() < header) return;
  e.headers = true;
  const auto head = with_version(in);
  if (e.tagged) {
    const auto h = ddp::tagged_header::parse(head);
    e.op = rdmap::opcode_of(h->ulp_control);
    e.last = h->last;
    e.tag = h->stag;
    e.tagged_offset = h->offset;
  } else {
    const auto h = ddp::untagged_header::parse(head);
    e.op = rdmap::opcode_of(h->ulp_control);
    e.last = h->last;
    e.invalidate = h->invalidate;
    e.queue = h->queue;
    e.sequence = h->sequence.value;
    e.offset = h->offset;
  }
  e.payload_size = unit.ulpdu_size - header;
  e.payload = in.subspan(header);
  const open_message* m = slot_of(e);
  continues_ = m && continues(e, *m);
  e.message = continues_ ? m->event.number : ++messages_;
}

void message_tracker::problem(const fpdu_unit& unit, std::string_view rule, std::string text) {
  out_.problem(from_, unit.offset, unit.frame, rule, std::move(text));
}

void message_tracker::handle(const fpdu_unit& unit, const fpdu_event& e) {
  if (terminated_ && !said_after_terminate_) {
    said_after_terminate_ = true;
    problem(unit, "RDMAP-43", "an FPDU behind the Terminate of the same side");
  }
  if (unit.ulpdu_size > max_ulpdu) {
    problem(unit, "MPA-04", fmt::format("a ULPDU of {} octets, above 64768", unit.ulpdu_size));
  }
  if (unit.crc == crc_state::bad) {
    problem(unit, "MPA-36", fmt::format("CRC32c is 0x{:08x}, computed 0x{:08x}", unit.crc_field, unit.crc_computed));
    // What the octets say is not to be trusted: an endpoint passes nothing of it up. A message they seem to belong to
    // is followed all the same, for its successors refer to it.
  }
  if (!unit.pad_zero) problem(unit, "MPA-11", "PAD is not 0");
  if (!e.headers) {
    if (unit.crc != crc_state::cut && unit.ulpdu_size != 0) {
      problem(unit, "RDMAP-70", fmt::format("a ULPDU of {} octets is shorter than its DDP header", unit.ulpdu_size));
    }
    return;
  }
  if (unit.crc != crc_state::bad) check_header(unit, e);
  open_message* slot = slot_of(e);
  if (!slot) {
    open_message alone;
    begin_message(unit, e, alone);
    complete(unit, alone);
    return;
  }
  open_message& m = *slot;
  const bool begins = !continues_;
  if (begins && m.active) {
    if (m.uncertain) {
      abandon(m, nullptr, {}, {});
    } else {
      abandon(m, &unit, e.tagged ? "DDP-06" : "DDP-03",
              e.tagged ? "another STag while the last segment of a tagged message is still to come"
                       : "another MSN while the last segment of a message is still to come");
    }
  }
  if (begins) begin_message(unit, e, m);
  if (e.tagged) {
    check_tagged(unit, e, m, begins);
  } else {
    check_untagged(unit, e, m, begins);
  }
  m.uncertain = false;
  m.event.at.frame = unit.frame;
  m.event.length += e.payload_size;
  ++m.event.segments;
  m.event.crc_bad = m.event.crc_bad || unit.crc == crc_state::bad;
  m.event.cut = m.event.cut || unit.crc == crc_state::cut;
  m.next = (e.tagged ? e.tagged_offset : e.offset) + e.payload_size;
  if (m.head.size() < head_size && !e.tagged) {
    const auto more = e.payload.first(std::min(e.payload.size(), head_size - m.head.size()));
    m.head.insert(m.head.end(), more.begin(), more.end());
  }
  if (!e.last) {
    if (e.payload_size == 0) problem(unit, "DDP-17", "a segment without payload that is not its message's last");
    if (e.op == opcode::terminate || fixed_size(e.op) != 0) {
      problem(unit, e.op == opcode::terminate ? "RDMAP-40" : size_rule(e.op),
              fmt::format("{} is one segment, and L is not set", rdmap::info(e.op).name));
    }
    return;
  }
  if (e.tagged && e.op == opcode::read_response) check_response_end(unit, e, m);
  complete(unit, m);
}

void message_tracker::check_header(const fpdu_unit& unit, const fpdu_event& e) {
  const std::uint8_t ddp_control = octet(unit.ulpdu, 0);
  const std::uint8_t rdmap_control = octet(unit.ulpdu, 1);
  if ((ddp_control & ddp::version_mask) != ddp::version) {
    problem(unit, "DDP-04", fmt::format("DDP version {}, not 1", ddp_control & ddp::version_mask));
  }
  if ((ddp_control & ddp_reserved) != 0) {
    problem(unit, "DDP-01", fmt::format("reserved bits of the DDP control octet 0x{:02x} are not 0", ddp_control));
  }
  if ((rdmap_control & rdmap::version_mask) != rdmap::version_bits) {
    problem(unit, "RDMAP-03", fmt::format("RDMAP version {}, not 1", rdmap_control >> 6));
  }
  if ((rdmap_control & rdmap_reserved) != 0) {
    problem(unit, "RDMAP-01",
            fmt::format("reserved bits of the RDMAP control octet 0x{:02x} are not 0", rdmap_control));
  }
  const rdmap::opcode_info& info = rdmap::info(e.op);
  if (!info.assigned) {
    problem(unit, "RDMAP-04", fmt::format("opcode 0x{:X} is not assigned", static_cast<unsigned>(e.op)));
    return;
  }
  if (info.tagged != e.tagged) {
    problem(unit, "RDMAP-05", fmt::format("{} in {} segment", info.name, e.tagged ? "a tagged" : "an untagged"));
    return;
  }
  if (e.tagged) {
    if (e.payload_size != 0 && e.tagged_offset + (e.payload_size - 1) < e.tagged_offset) {
      problem(unit, "DDP-34", fmt::format("TO 0x{:x} and {} octets wrap", e.tagged_offset, e.payload_size));
    }
    return;
  }
  if (e.queue >= known_queues) {
    problem(unit, "DDP-26", fmt::format("queue {} does not exist", e.queue));
  } else if (e.queue != info.queue) {
    problem(unit, "RDMAP-05", fmt::format("{} on queue {}, not {}", info.name, e.queue, info.queue));
  }
  if (!rdmap::invalidates(e.op) && e.invalidate.value != 0) {
    problem(unit, e.op >= opcode::immediate ? "EXT-01" : "RDMAP-07",
            fmt::format("the Invalidate STag field of {} is 0x{:08x}, not 0", info.name, e.invalidate.value));
  }
  if (const std::size_t size = fixed_size(e.op); size != 0 && e.payload_size != size) {
    problem(unit, size_rule(e.op),
            fmt::format("{} of {} octets behind the DDP header, not {}", info.name, e.payload_size, size));
  }
}

void message_tracker::begin_message(const fpdu_unit& unit, const fpdu_event& e, open_message& m) {
  const bool uncertain = m.uncertain;
  std::vector<std::byte> head = std::move(m.head);
  head.clear();
  m = {};
  m.head = std::move(head);
  m.active = true;
  m.event.at = e.at;
  m.event.first_frame = unit.first_frame;
  m.event.number = e.message;
  m.event.op = e.op;
  m.event.tag = e.tag;
  m.event.tagged_offset = e.tagged_offset;
  m.event.invalidate = e.invalidate;
  m.event.queue = e.queue;
  m.event.sequence = e.sequence;
  m.event.cut = uncertain && !e.tagged && e.offset != 0;
  m.uncertain = uncertain;
  m.next = e.tagged ? e.tagged_offset : e.offset;
  if (e.tagged && e.op == opcode::read_response) begin_response(unit, e, m);
}

void message_tracker::check_tagged(const fpdu_unit& unit, const fpdu_event& e, open_message& m, bool begins) {
  if (e.op == opcode::write && begins) check_valid(unit, e.tag);
  if (begins) return;
  if (e.tagged_offset != m.next) {
    if (m.uncertain) {
      m.event.cut = true;
    } else {
      problem(unit, "DDP-07", fmt::format("TO 0x{:x}, where the message has come to 0x{:x}", e.tagged_offset, m.next));
    }
  }
}

void message_tracker::check_untagged(const fpdu_unit& unit, const fpdu_event& e, open_message& m, bool begins) {
  auto& expected = sequence_[e.queue];
  if (begins) {
    if (expected && *expected != e.sequence) {
      problem(unit, "DDP-10", fmt::format("MSN {} on queue {}, where {} is due", e.sequence, e.queue, *expected));
    }
    expected = e.sequence + 1;
  }
  if (!begins && e.op != m.event.op) {
    problem(unit, "DDP-09", fmt::format("{} in a message that began as {}", short_name(e.op), short_name(m.event.op)));
  } else if (!begins && e.invalidate != m.event.invalidate) {
    problem(unit, "DDP-09", "the segments of a message carry different Invalidate STags");
  }
  const std::uint64_t due = begins ? 0 : m.next;
  if (e.offset != due) {
    if (m.uncertain) {
      m.event.cut = true;
    } else {
      problem(unit, "DDP-12", fmt::format("MO {}, where {} is due", e.offset, due));
    }
  }
}

void message_tracker::check_valid(const fpdu_unit& unit, stag tag) {
  if (invalidated_.contains(tag.value)) {
    problem(unit, "RDMAP-38", fmt::format("STag 0x{:08x}, which a Send of the same side invalidated", tag.value));
  }
}

void message_tracker::begin_response(const fpdu_unit& unit, const fpdu_event& e, open_message& m) {
  request_ledger& asked = peer_->requests_;
  // Behind a gap requests and responses may be missing: then nothing that is odd about a response is anybody's fault.
  const bool certain = peer_->requests_certain_;
  const auto fits = [&](const pending_request& r) {
    return !r.atomic && r.read.sink == e.tag && r.read.sink_offset == e.tagged_offset;
  };
  const pending_request* r = asked.oldest();
  if (!r) {
    if (certain) problem(unit, "RDMAP-29", "a Read Response without a Read Request that waits for it");
    return;
  }
  if (!fits(*r)) {
    const auto& all = asked.all();
    const auto match = std::ranges::find_if(all, fits);
    if (match != all.end()) {
      if (certain) {
        problem(unit, "RDMAP-25",
                fmt::format("the response to message {} comes before that to message {}", match->message, r->message));
        r = &*match;
      } else {
        // Those before it were answered where the capture has a gap.
        for (auto earlier = match - all.begin(); earlier != 0; --earlier) asked.remove(0);
        r = asked.oldest();
      }
    } else if (!certain) {
      return;
    } else if (r->atomic) {
      problem(unit, "EXT-18", "a Read Response where an Atomic Response is due");
      return;
    } else {
      problem(unit, "RDMAP-18",
              fmt::format("Read Response to 0x{:08x}:0x{:x}, where message {} asked for 0x{:08x}:0x{:x}", e.tag.value,
                          e.tagged_offset, r->message, r->read.sink.value, r->read.sink_offset));
    }
  }
  m.request = r->message;
  m.expected = r->read.size;
}

void message_tracker::check_response_end(const fpdu_unit& unit, const fpdu_event&, const open_message& m) {
  if (!m.request) return;
  request_ledger& asked = peer_->requests_;
  const auto& all = asked.all();
  const auto match = std::ranges::find(all, *m.request, &pending_request::message);
  if (match != all.end()) asked.remove(static_cast<std::size_t>(match - all.begin()));
  peer_->request_answered();
  if (m.event.length != m.expected && !m.event.cut) {
    problem(unit, "RDMAP-19",
            fmt::format("a Read Response of {} octets, where message {} asked for {}", m.event.length, *m.request,
                        m.expected));
  }
}

void message_tracker::complete(const fpdu_unit& unit, open_message& m) {
  m.active = false;
  switch (m.event.op) {
    case opcode::read_request:
    case opcode::atomic_request:
      complete_request(unit, m);
      break;
    case opcode::read_response:
      m.event.detail = answer{m.request};
      break;
    case opcode::atomic_response:
      complete_atomic_response(unit, m);
      break;
    case opcode::immediate:
    case opcode::immediate_solicited:
      if (m.head.size() >= rdmap::immediate_size) {
        m.event.detail = immediate_data{load_be<std::uint64_t>(const_bytes(m.head).first<rdmap::immediate_size>())};
      }
      break;
    case opcode::terminate:
      complete_terminate(unit, m);
      break;
    case opcode::send_invalidate:
    case opcode::send_solicited_invalidate:
      if (m.event.invalidate.value == 0) {
        problem(unit, "RDMAP-37", "STag 0 cannot be invalidated");
      }
      if (invalidated_.size() == most_invalidated) invalidated_.clear();
      invalidated_.insert(m.event.invalidate.value);
      break;
    case opcode::write:
    case opcode::send:
    case opcode::send_solicited:
      break;
  }
  out_.message(m.event);
}

void message_tracker::complete_request(const fpdu_unit& unit, open_message& m) {
  pending_request r{.message = m.event.number, .offset = m.event.at.offset, .frame = unit.frame};
  if (m.event.op == opcode::read_request) {
    if (m.head.size() < rdmap::read_request_size) {
      doubt_requests();  // there is a request, and nothing is known of it
      return;
    }
    r.read = rdmap::read_request::parse(const_bytes(m.head).first<rdmap::read_request_size>());
    m.event.detail = r.read;
    if (r.read.size != 0) check_valid(unit, r.read.source);
  } else {
    if (m.head.size() < rdmap::atomic_request_size) {
      doubt_requests();
      return;
    }
    const auto wire = const_bytes(m.head).first<rdmap::atomic_request_size>();
    const auto a = rdmap::atomic_request::parse(wire);
    m.event.detail = a;
    r.atomic = true;
    r.identifier = a.identifier;
    check_valid(unit, a.remote);
    if (a.op != rdmap::atomic_opcode::fetch_add && a.op != rdmap::atomic_opcode::compare_swap) {
      problem(unit, "EXT-11", fmt::format("AOpCode {} is not assigned", static_cast<unsigned>(a.op)));
    }
    if ((load_be<std::uint32_t>(wire.first<4>()) & ~std::uint32_t{0x0F}) != 0) {
      problem(unit, "EXT-28", "reserved bits of the Atomic Request are not 0");
    }
    if (a.op == rdmap::atomic_opcode::fetch_add && (a.compare != 0 || ~a.compare_mask != 0)) {
      problem(unit, "EXT-28", "FetchAdd with Compare Data other than 0 or a Compare Mask other than all ones");
    }
  }
  add_request(unit, r);
}

void message_tracker::add_request(const fpdu_unit& unit, const pending_request& r) {
  requests_.add(r);
  if (most_reads_ && requests_certain_ && requests_.size() > *most_reads_) {
    problem(
        unit, "RDMAP-24",
        fmt::format("{} Read or Atomic Requests outstanding, where {} were agreed", requests_.size(), *most_reads_));
  }
}

void message_tracker::complete_atomic_response(const fpdu_unit& unit, open_message& m) {
  if (m.head.size() < rdmap::atomic_response_size) return;
  atomic_answer a;
  a.response = rdmap::atomic_response::parse(const_bytes(m.head).first<rdmap::atomic_response_size>());
  request_ledger& asked = peer_->requests_;
  const auto fits = [&](const pending_request& r) { return r.atomic && r.identifier == a.response.identifier; };
  const auto& all = asked.all();
  const auto match = std::ranges::find_if(all, fits);
  if (match == all.end()) {
    if (peer_->requests_certain_) {
      const bool any = std::ranges::any_of(all, &pending_request::atomic);
      problem(unit, "EXT-17",
              any ? fmt::format("an Atomic Response with Request Identifier 0x{:x}, which no request has",
                                a.response.identifier)
                  : std::string("an Atomic Response without an Atomic Request that waits for it"));
      if (any && asked.oldest()->atomic) asked.remove(0);
    }
  } else {
    if (match != all.begin() && peer_->requests_certain_) {
      problem(unit, "EXT-18",
              fmt::format("the response to message {} comes before that to message {}", match->message,
                          all.front().message));
    }
    a.request = match->message;
    asked.remove(static_cast<std::size_t>(match - all.begin()));
    peer_->request_answered();
  }
  m.event.detail = a;
}

void message_tracker::complete_terminate(const fpdu_unit& unit, open_message& m) {
  terminated_ = true;
  if (peer_->terminated_) problem(unit, "RDMAP-69", "a Terminate in answer to a Terminate");
  const auto t = rdmap::terminate_message::parse(m.head);
  if (m.event.cut) {
    if (t) m.event.detail = terminate_detail{*t};  // what is missing may only be so in the capture
    return;
  }
  if (!t) {
    problem(unit, "RDMAP-40", fmt::format("a Terminate of {} octets, less than its control word", m.head.size()));
    return;
  }
  m.event.detail = terminate_detail{*t};
  if (t->swapped_reading) {
    problem(unit, "RDMAP-40",
            "the control word is laid out as Linux siw does on little-endian hosts: nibbles and M, D, R reversed");
    return;
  }
  const std::uint8_t bits = octet(m.head, 2);
  if ((bits & 0x1F) != 0 || octet(m.head, 3) != 0)
    problem(unit, "RDMAP-40", "reserved bits of the Terminate are not 0");
  const bool length_valid = (bits & 0x80) != 0;
  const bool ddp_header = (bits & 0x40) != 0;
  const bool rdma_header = (bits & 0x20) != 0;
  if (length_valid && !ddp_header) problem(unit, "RDMAP-45", "M is set without D: there is no DDP segment length");
  if (ddp_header && t->ddp_header_size == 0) problem(unit, "RDMAP-45", "D is set, and the DDP header is not there");
  if (rdma_header && !t->request) problem(unit, "RDMAP-45", "R is set, and the RDMA header is not there");
  if (t->ddp_header_size != 0 && rdma_header) {
    if (rdmap::opcode_of(std::to_integer<std::uint8_t>(t->ddp_header[1])) != opcode::read_request) {
      problem(unit, "RDMAP-46", "an RDMA header for what is no Read Request");
    }
  }
  const bool catastrophic = t->code.type == 0 && t->code.layer < 2;
  if (catastrophic && ddp_header) problem(unit, "RDMAP-48", "a local catastrophic error with a DDP header");
}

void message_tracker::handle_gap() noexcept {
  for (auto* slots : {&tagged_[0], &tagged_[1], &untagged_[0], &untagged_[1], &untagged_[2], &untagged_[3]}) {
    slots->uncertain = true;
    if (slots->active) slots->event.cut = true;
  }
  for (auto& s : sequence_) s.reset();
  // Requests, and responses to the peer's, may be among what is missing.
  doubt_requests();
  if (peer_) peer_->doubt_requests();
}

void message_tracker::doubt_requests() noexcept {
  requests_certain_ = false;
  answered_ = 0;
}

void message_tracker::request_answered() noexcept {
  // Responses come in the order of requests, so a gap is forgotten once all that can be outstanding was asked since.
  if (!requests_certain_ && ++answered_ > longest_doubt) requests_certain_ = true;
}

void message_tracker::abandon(open_message& m, const fpdu_unit* unit, std::string_view rule, std::string_view why) {
  m.active = false;
  m.event.unfinished = true;
  if (m.event.op == opcode::read_response) m.event.detail = answer{m.request};
  if (unit) {
    problem(*unit, rule, fmt::format("{} ({} of {} octets so far)", why, short_name(m.event.op), m.event.length));
  }
  out_.message(m.event);
}

void message_tracker::finish(bool closed, frame_ref frame) {
  const bool expected = terminated_ || peer_->terminated_ || !closed;
  for (auto* m : {&tagged_[0], &tagged_[1], &untagged_[0], &untagged_[1], &untagged_[2], &untagged_[3]}) {
    if (!m->active) continue;
    const std::uint64_t offset = m->event.at.offset;
    abandon(*m, nullptr, {}, {});
    if (!expected) {
      out_.problem(from_, offset, frame, "DDP-03",
                   fmt::format("the connection ended inside a message: {} of {} octets so far", short_name(m->event.op),
                               m->event.length));
    }
  }
  if (!expected && requests_certain_ && requests_.size() != 0) {
    const pending_request& r = *requests_.oldest();
    out_.problem(from_, r.offset, r.frame, r.atomic ? "EXT-13" : "RDMAP-19",
                 fmt::format("{} requests were never answered, message {} first", requests_.size(), r.message));
  }
}

}  // namespace iwarp::dump
