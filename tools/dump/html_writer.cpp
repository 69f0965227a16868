#include "tools/dump/html_writer.hpp"

#include <algorithm>
#include <utility>

#include "tools/dump/page_sources.hpp"
#include "tools/dump/text_writer.hpp"

namespace iwarp::dump {
namespace {

using buffer = fmt::memory_buffer;

constexpr std::uint64_t block_rows = 8192;
constexpr std::uint64_t request_frame = 16;  // kinds behind the opcodes
constexpr std::uint64_t reply_frame = 17;

template <class... Arguments>
void add(buffer& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Arguments>(arguments)...);
}

void add_raw(buffer& out, std::string_view text) { out.append(text); }

/// A JSON string within HTML: nothing in it ends the element, or begins a comment.
void add_string(buffer& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    const auto v = static_cast<unsigned char>(c);
    if (v < 0x20 || v == '<' || v == '>' || v == '&' || v == '"' || v == '\\') {
      add(out, "\\u{:04x}", static_cast<unsigned>(v));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

std::string_view text_of(const buffer& b) { return {b.data(), b.size()}; }

void add_depth(buffer& out, const std::optional<std::uint16_t>& depth) {
  if (depth) {
    add(out, "{}", *depth);
  } else {
    add_raw(out, "null");
  }
}

}  // namespace

void html_writer::column::step(std::uint64_t& before, std::uint64_t value) {
  fmt::format_to(std::back_inserter(separated()), "{}", static_cast<std::int64_t>(value - before));
  before = value;
}

void html_writer::column::step_wide(std::uint64_t& before, std::uint64_t value) {
  static constexpr std::uint64_t exact = std::uint64_t{1} << 53;
  if (value < exact) {
    step(before, value);
    return;
  }
  fmt::format_to(std::back_inserter(separated()), "\"0x{:x}\"", value);
  before = 0;
}

void html_writer::column::add_text(std::string_view text) { add_string(separated(), text); }

void html_writer::column::flush(fmt::memory_buffer& out, std::string_view key) {
  iwarp::dump::add(out, "{}\"{}\":[", key == "k" ? "" : ",", key);
  add_raw(out, text_of(text_));
  out.push_back(']');
  text_.clear();
}

html_writer::html_writer(std::string path, std::string_view capture, event_sink& next, html_limits limits)
    : file_(std::move(path)), next_(next), limits_(limits) {
  const std::string_view page = page_source("page.html");
  std::string_view left = page.substr(0, page.find("<!--data-->"));
  const auto put = [&](std::string_view mark, std::string_view name) {
    const std::size_t at = left.find(mark);
    file_.add(left.substr(0, at));
    file_.add(page_source(name));
    left.remove_prefix(at + mark.size());
  };
  put("/*plot style*/", "vendor/uPlot.min.css");
  put("/*style*/", "page.css");
  file_.add(left);
  buffer& out = file_.text();
  add_raw(out, "<script type=\"application/json\" id=\"capture\">{\"name\":");
  add_string(out, capture);
  add_raw(out, ",\"operations\":[");
  for (unsigned i = 0; i != 16; ++i) {
    add(out, "{}\"{}\"", i == 0 ? "" : ",", short_name(static_cast<rdmap::opcode>(i)));
  }
  add_raw(out, "]}</script>\n");
  file_.more();
}

html_writer::~html_writer() = default;

html_writer::stream_record* html_writer::record(const place& at) {
  (void)since(at.frame.time);  // the first of all is the origin
  const auto found = streams_.find(at.stream->number);
  stream_record* r = found == streams_.end() ? nullptr : &found->second;
  if (r == nullptr) {
    if (streams_.size() >= limits_.streams) return nullptr;
    r = &streams_[at.stream->number];
    order_.push_back(at.stream->number);
    r->client = at.stream->client;
    r->server = at.stream->server;
    r->first = r->last = at.frame.time;
  }
  r->first = std::min(r->first, at.frame.time);
  r->last = std::max(r->last, at.frame.time);
  return r;
}

std::uint64_t html_writer::since(std::int64_t time) {
  if (!origin_) origin_ = time;
  return static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(*origin_);
}

void html_writer::begin_row(const place& at, frame_ref first, std::uint64_t kind, std::uint64_t number,
                            std::uint64_t length) {
  message_columns& c = messages_;
  message_before& b = message_before_;
  std::uint64_t none = 0;
  c.kind.add(kind | (at.from == side::server ? 32U : 0U));
  c.stream.step(b.stream, at.stream->number);
  c.time.step(b.time, since(at.frame.time));
  none = static_cast<std::uint64_t>(first.time);
  c.duration.step(none, static_cast<std::uint64_t>(at.frame.time));
  c.frame.step(b.frame, at.frame.number);
  none = first.number;
  c.frames.step(none, at.frame.number);
  c.number.step(b.number, number);
  c.length.add(length);
  c.offset.step(b.offset[index_of(at.from)], at.offset);
}

void html_writer::end_row(std::string_view text) {
  if (!text.empty()) {
    messages_.text_at.add(messages_.rows);
    messages_.text.add_text(text);
  }
  ++messages_kept_;
  if (++messages_.rows == block_rows) flush_block();
}

void html_writer::on(const stream_event& e) {
  next_.on(e);
  const bool known = streams_.contains(e.stream->number);
  stream_record* r = record(place{.stream = e.stream, .frame = e.frame});
  if (r == nullptr) {
    if (!known) ++streams_left_;
    return;
  }
  r->how = e.how;
}

void html_writer::on(const mpa_event& e) {
  next_.on(e);
  stream_record* r = record(e.at);
  if (r == nullptr) return;
  if (e.negotiated) r->agreed = e.negotiated;
  if (e.kind == mpa::frame_kind::reply) r->rejected = e.rejected;
  if (messages_kept_ >= limits_.messages) {
    ++messages_left_;
    return;
  }
  buffer text;
  append_fields(text, e, e.private_data.size());
  begin_row(e.at, e.at.frame, e.kind == mpa::frame_kind::request ? request_frame : reply_frame, message_before_.number,
            e.wire.size());
  messages_.segments.add(0);
  messages_.tag.add(0);
  messages_.tagged_offset.add(0);
  messages_.sequence.add(0);
  messages_.request.add(0);
  end_row(text_of(text));
}

void html_writer::on(const fpdu_event& e) {
  next_.on(e);
  stream_record* r = record(e.at);
  if (r == nullptr) return;
  ++r->fpdus;
  if (e.crc == crc_state::ok || e.crc == crc_state::bad) r->crc_used = true;
  if (!e.headers) return;
  const bool first = e.message > r->highest;
  r->highest = std::max(r->highest, e.message);
  r->crc[index_of(e.at.from)] = e.crc;
  if (first && e.last) return;
  if (fpdus_kept_ >= limits_.fpdus) {
    ++fpdus_left_;
    return;
  }
  fpdu_columns& c = fpdus_;
  fpdu_before& b = fpdu_before_;
  const std::size_t from = index_of(e.at.from);
  c.kind.add((e.at.from == side::server ? 1U : 0U) | (e.last ? 2U : 0U) | (e.tagged ? 4U : 0U) |
             static_cast<unsigned>(e.crc) << 3);
  c.stream.step(b.stream, e.at.stream->number);
  c.number.step(b.number, e.message);
  c.time.step(b.time, since(e.at.frame.time));
  c.frame.step(b.frame, e.at.frame.number);
  c.offset.step(b.offset[from], e.at.offset);
  c.length.add(e.payload_size);
  c.position.step_wide(b.position[from], e.tagged ? e.tagged_offset : e.offset);
  ++fpdus_kept_;
  if (++c.rows == block_rows) flush_block();
}

void html_writer::on(const message_event& e) {
  next_.on(e);
  stream_record* r = record(e.at);
  if (r == nullptr) return;
  const auto op = static_cast<std::size_t>(e.op) & rdmap::opcode_mask;
  const std::size_t from = index_of(e.at.from);
  ++r->messages;
  r->octets[op][from] += e.length;
  r->first = std::min(r->first, e.first_frame.time);
  if (messages_kept_ >= limits_.messages) {
    ++messages_left_;
    return;
  }
  message_columns& c = messages_;
  begin_row(e.at, e.first_frame,
            op | (e.crc_bad ? 64U : 0U) | (e.cut ? 128U : 0U) | (e.unfinished ? 256U : 0U) |
                static_cast<unsigned>(r->crc[from]) << 9,
            e.number, e.length);
  c.segments.add(e.segments);
  auto& before = message_before_.by_kind[op * 2 + from];
  const bool tagged = rdmap::info(e.op).tagged;
  c.tag.step(before[0], tagged ? e.tag.value : rdmap::invalidates(e.op) ? e.invalidate.value : 0);
  c.tagged_offset.step_wide(before[1], tagged ? e.tagged_offset : 0);
  c.sequence.step(before[2], tagged ? 0 : e.sequence);
  std::optional<std::uint64_t> request;
  if (const auto* a = std::get_if<answer>(&e.detail)) request = a->request;
  if (const auto* a = std::get_if<atomic_answer>(&e.detail)) request = a->request;
  std::uint64_t number = request.value_or(e.number);
  c.request.step(number, e.number);
  buffer text;
  const bool asks = e.op == rdmap::opcode::read_request;
  if (const auto* read = std::get_if<rdmap::read_request>(&e.detail); asks && read != nullptr) {
    auto& b = message_before_.by_reader[from];
    c.reads.add(read->size);
    c.reads.step(b[0], read->source.value);
    c.reads.step_wide(b[1], read->source_offset);
    c.reads.step(b[2], read->sink.value);
    c.reads.step_wide(b[3], read->sink_offset);
  } else if (asks) {
    add_raw(text, "its fields were not seen");  // the page counts on words where there are no columns
  } else if (!std::holds_alternative<answer>(e.detail)) {
    append_detail(text, e);
  }
  const std::string_view words = text_of(text);
  end_row(words.substr(std::min(words.find_first_not_of(' '), words.size())));
}

void html_writer::add_problem(const place& at, std::string_view rule, std::string_view text, bool note) {
  stream_record* r = record(at);
  if (r == nullptr) return;
  ++(note ? r->notes : r->problems);
  if (problems_kept_ >= limits_.problems) {
    ++problems_left_;
    return;
  }
  problem_columns& c = problems_;
  problem_before& b = problem_before_;
  c.kind.add((at.from == side::server ? 1U : 0U) | (note ? 2U : 0U));
  c.stream.step(b.stream, at.stream->number);
  c.time.step(b.time, since(at.frame.time));
  c.frame.step(b.frame, at.frame.number);
  c.offset.add(at.offset);
  c.rule.add_text(rule);
  c.text.add_text(text);
  ++problems_kept_;
  if (++c.rows == block_rows) flush_block();
}

void html_writer::on(const problem_event& e) {
  next_.on(e);
  add_problem(e.at, e.rule, e.text, false);
}

void html_writer::on(const note_event& e) {
  next_.on(e);
  add_problem(e.at, e.rule, e.text, true);
}

void html_writer::on(const lost_event& e) {
  next_.on(e);
  if (stream_record* r = record(e.at)) r->lost += e.octets;
}

void html_writer::flush_block() {
  buffer& out = file_.text();
  add(out, "<script type=\"application/json\" class=\"block\" data-rows=\"{} {} {}\">{{\"messages\":{{", messages_.rows,
      fpdus_.rows, problems_.rows);
  message_columns& m = messages_;
  m.kind.flush(out, "k");
  m.stream.flush(out, "stream");
  m.time.flush(out, "time");
  m.duration.flush(out, "duration");
  m.frame.flush(out, "frame");
  m.frames.flush(out, "frames");
  m.number.flush(out, "number");
  m.length.flush(out, "length");
  m.segments.flush(out, "segments");
  m.offset.flush(out, "offset");
  m.tag.flush(out, "tag");
  m.tagged_offset.flush(out, "to");
  m.sequence.flush(out, "msn");
  m.request.flush(out, "request");
  m.reads.flush(out, "reads");
  m.text_at.flush(out, "textAt");
  m.text.flush(out, "text");
  add_raw(out, "},\"fpdus\":{");
  fpdu_columns& f = fpdus_;
  f.kind.flush(out, "k");
  f.stream.flush(out, "stream");
  f.number.flush(out, "number");
  f.time.flush(out, "time");
  f.frame.flush(out, "frame");
  f.offset.flush(out, "offset");
  f.length.flush(out, "length");
  f.position.flush(out, "position");
  add_raw(out, "},\"problems\":{");
  problem_columns& p = problems_;
  p.kind.flush(out, "k");
  p.stream.flush(out, "stream");
  p.time.flush(out, "time");
  p.frame.flush(out, "frame");
  p.offset.flush(out, "offset");
  p.rule.flush(out, "rule");
  p.text.flush(out, "text");
  add_raw(out, "}}</script>\n");
  messages_.rows = fpdus_.rows = problems_.rows = 0;
  file_.more();
}

void html_writer::write_streams() {
  buffer& out = file_.text();
  std::ranges::sort(order_);
  add_raw(out, ",\"streams\":[");
  std::string_view comma;
  for (const std::uint64_t number : order_) {
    const stream_record& r = streams_.at(number);
    add(out, "{}\n{{\"number\":{},\"client\":", comma, number);
    add_string(out, r.client);
    add_raw(out, ",\"server\":");
    add_string(out, r.server);
    add(out,
        ",\"startup\":{},\"rejected\":{},\"crcUsed\":{},\"fpdus\":{},\"messages\":{},\"problems\":{},\"notes\":{},"
        "\"lost\":{},\"first\":{},\"last\":{}",
        r.how == found_by::startup, r.rejected, r.crc_used, r.fpdus, r.messages, r.problems, r.notes, r.lost,
        static_cast<std::int64_t>(since(r.first)), static_cast<std::int64_t>(since(r.last)));
    if (r.agreed) {
      const agreement& a = *r.agreed;
      add(out,
          ",\"agreed\":{{\"revision\":{},\"crc\":{},\"markersFromInitiator\":{},\"markersFromResponder\":{},"
          "\"peerToPeer\":{},\"initiatorReads\":",
          a.revision, a.crc, a.markers_from_initiator, a.markers_from_responder, a.peer_to_peer);
      add_depth(out, a.initiator_reads);
      add_raw(out, ",\"responderReads\":");
      add_depth(out, a.responder_reads);
      out.push_back('}');
    }
    add_raw(out, ",\"octets\":[");
    std::string_view between;
    for (std::size_t op = 0; op != r.octets.size(); ++op) {
      if (r.octets[op][0] == 0 && r.octets[op][1] == 0) continue;
      add(out, "{}[{},{},{}]", between, op, r.octets[op][0], r.octets[op][1]);
      between = ",";
    }
    add_raw(out, "]}");
    comma = ",";
    file_.more();
  }
  out.push_back(']');
}

void html_writer::on(const summary_event& e) {
  next_.on(e);
  flush_block();
  buffer& out = file_.text();
  add(out,
      "<script type=\"application/json\" "
      "id=\"summary\">{{\"frames\":{},\"tcpStreams\":{},\"streamCount\":{},\"fpdus\":{},"
      "\"messages\":{},\"problems\":{},\"crcBad\":{},\"lost\":{},\"origin\":{},\"left\":{{\"messages\":{},"
      "\"fpdus\":{},\"problems\":{},\"streams\":{}}}",
      e.frames, e.tcp_streams, e.streams, e.fpdus, e.messages, e.problems, e.crc_bad, e.lost_octets,
      origin_.value_or(0) / 1'000'000, messages_left_, fpdus_left_, problems_left_, streams_left_);
  write_streams();
  add_raw(out, "}</script>\n");
  const std::string_view page = page_source("page.html");
  static constexpr std::string_view data_mark = "<!--data-->";
  static constexpr std::string_view licence_mark = "<!--licence-->";
  static constexpr std::string_view script_mark = "/*script*/";
  std::string_view left = page.substr(page.find(data_mark) + data_mark.size());
  const auto until = [&](std::string_view mark) {
    const std::size_t at = left.find(mark);
    file_.add(left.substr(0, at));
    left.remove_prefix(at + mark.size());
  };
  until(licence_mark);
  add_raw(out, "<!--\n");
  file_.add(page_source("vendor/uPlot.LICENSE"));
  add_raw(out, "-->");
  until("/*plot script*/");
  file_.add(page_source("vendor/uPlot.iife.min.js"));
  until(script_mark);
  for (const std::string_view name : {"data.js", "ladder.js", "plots.js", "page.js"}) file_.add(page_source(name));
  file_.add(left);
  file_.commit();
}

}  // namespace iwarp::dump
