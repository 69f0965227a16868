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
  add(value - before);
  before = value;
}
