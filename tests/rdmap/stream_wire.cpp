#include "tests/rdmap/stream_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace iwarp::stream_test {

namespace {

octets big_endian(std::uint64_t value, std::size_t size) {
  octets out(size);
  for (std::size_t i = 0; i < size; ++i) out[size - 1 - i] = static_cast<std::byte>(value >> (8 * i));
  return out;
}

std::uint64_t big_endian(const_bytes in) {
  std::uint64_t value = 0;
  for (const std::byte b : in) value = value << 8 | std::to_integer<std::uint64_t>(b);
  return value;
}

octets text(std::string_view words) {
  octets out(words.size());
  std::transform(words.begin(), words.end(), out.begin(), [](char c) { return static_cast<std::byte>(c); });
  return out;
}

octets octet(unsigned value) { return {static_cast<std::byte>(value)}; }

void append(octets& to, const_bytes what) { to.insert(to.end(), what.begin(), what.end()); }

std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

octets crc_field(const_bytes covered) {
  octets field = big_endian(reference_crc32c(covered), 4);
  std::reverse(field.begin(), field.end());  // the one little-endian field
  return field;
}

}  // namespace

octets operator+(octets left, const octets& right) {
  append(left, right);
  return left;
}
octets be16(std::uint16_t value) { return big_endian(value, 2); }
octets be32(std::uint32_t value) { return big_endian(value, 4); }
octets be64(std::uint64_t value) { return big_endian(value, 8); }

void fill(mutable_bytes out, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (std::byte& b : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(state >> 56);
  }
}

octets pattern(std::size_t size, std::uint64_t seed) {
  octets out(size);
  fill(out, seed);
  return out;
}

std::uint32_t reference_crc32c(const_bytes in) {
  static const auto table = crc_table();
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte b : in) crc = (crc >> 8) ^ table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFF];
  return crc ^ 0xFFFFFFFFu;
}

octets startup_frame(const startup_words& words) {
  const octets enhanced = (words.flags & flag_s) != 0 ? be16(words.ird_word) + be16(words.ord_word) : octets{};
  return text(words.reply ? "MPA ID Rep Frame" : "MPA ID Req Frame") + octet(words.flags) + octet(words.revision) +
         be16(static_cast<std::uint16_t>(enhanced.size() + words.data.size())) + enhanced + words.data;
}

std::optional<startup_words> read_startup_frame(const_bytes in) {
  if (in.size() < 20) return std::nullopt;
  startup_words words;
  const octets key(in.begin(), in.begin() + 16);
  if (key == text("MPA ID Rep Frame")) {
    words.reply = true;
  } else if (key != text("MPA ID Req Frame")) {
    return std::nullopt;
  }
  words.flags = std::to_integer<std::uint8_t>(in[16]);
  words.revision = std::to_integer<std::uint8_t>(in[17]);
  if (in.size() != 20 + big_endian(in.subspan(18, 2))) return std::nullopt;
  const_bytes data = in.subspan(20);
  if ((words.flags & flag_s) != 0) {
    if (data.size() < 4) return std::nullopt;
    words.ird_word = static_cast<std::uint16_t>(big_endian(data.first(2)));
    words.ord_word = static_cast<std::uint16_t>(big_endian(data.subspan(2, 2)));
    data = data.subspan(4);
  }
  words.data.assign(data.begin(), data.end());
  return words;
}

octets segment(const untagged& header, const octets& payload) {
  return octet((header.last ? 0x40u : 0u) | header.ddp_version) +
         octet(static_cast<unsigned>(header.rdmap_version) << 6 | header.op) + be32(header.invalidate) +
         be32(header.queue) + be32(header.sequence) + be32(header.offset) + payload;
}

octets segment(const tagged& header, const octets& payload) {
  return octet(0x80u | (header.last ? 0x40u : 0u) | header.ddp_version) +
         octet(static_cast<unsigned>(header.rdmap_version) << 6 | header.op) + be32(header.stag) + be64(header.offset) +
         payload;
}

octets read_request_header(const read_words& words) {
  return be32(words.sink) + be64(words.sink_offset) + be32(words.size) + be32(words.source) + be64(words.source_offset);
}

octets read_request_segment(std::uint32_t sequence, const read_words& words) {
  return segment(untagged{.op = 1, .queue = 1, .sequence = sequence}, read_request_header(words));
}

octets terminate_segment(std::uint8_t layer_and_type, std::uint8_t code, const octets& offender, bool with_request) {
  octets body = octet(layer_and_type) + octet(code);
  if (offender.empty()) {
    body = body + be16(0);
  } else {
    const bool is_tagged = (std::to_integer<unsigned>(offender[0]) & 0x80u) != 0;
    const std::size_t size = (is_tagged ? 14u : 18u) + (with_request ? 28u : 0u);
    body = body + octet(with_request ? 0xE0 : 0xC0) + octet(0) + be16(static_cast<std::uint16_t>(offender.size()));
    append(body, const_bytes{offender}.first(size));
  }
  return segment(untagged{.op = 7, .queue = 2}, body);
}

octets fpdu_framer::frame(const octets& ulpdu) {
  octets body = be16(static_cast<std::uint16_t>(ulpdu.size())) + ulpdu;
  while (body.size() % 4 != 0) body.push_back(std::byte{0});
  octets out;
  const std::uint64_t begin = position_;
  std::uint64_t length_at = 0;
  const auto marker_if_due = [&](bool in_front) {
    const std::uint64_t at = begin + out.size();
    if (!markers || at % 512 != 0) return;
    append(out, be16(0) + be16(static_cast<std::uint16_t>(in_front ? 0 : at - length_at)));
  };
  for (std::size_t i = 0; i < body.size(); i += 4) {
    marker_if_due(i == 0);
    if (i == 0) length_at = begin + out.size();
    append(out, const_bytes{body}.subspan(i, 4));
  }
  marker_if_due(false);
  append(out, crc ? crc_field(out) : be32(0));
  position_ += out.size();
  return out;
}

std::vector<octets> fpdu_splitter::split(const_bytes in) {
  append(pending_, in);
  std::vector<octets> found;
  octets ulpdu;
  while (one(ulpdu)) found.push_back(ulpdu);
  return found;
}

bool fpdu_splitter::one(octets& out) {
  // Without its markers the FPDU is 2 + ULPDU_Length + PAD + 4 octets; find out how many of `pending_` that takes.
  octets plain;
  std::size_t at = 0, need = 4, length_at = 0;
  octets covered;
  while (plain.size() < need) {
    if ((position_ + at) % 512 == 0 && markers) {
      if (pending_.size() < at + 4) return false;
      const const_bytes marker = const_bytes{pending_}.subspan(at, 4);
      const std::size_t expected = plain.empty() ? 0 : at - length_at;
      EXPECT_EQ(big_endian(marker), expected) << "marker at position " << position_ + at;
      append(covered, marker);
      at += 4;
    }
    if (pending_.size() < at + 4) return false;
    const const_bytes group = const_bytes{pending_}.subspan(at, 4);
    if (plain.empty()) {
      length_at = at;
      need = (2 + big_endian(group.first(2)) + 3) / 4 * 4 + 4;
    }
    append(plain, group);
    at += 4;
    if (plain.size() < need) append(covered, group);
  }
  const auto size = static_cast<std::size_t>(big_endian(const_bytes{plain}.first(2)));
  for (std::size_t i = 2 + size; i + 4 < plain.size(); ++i) EXPECT_EQ(plain[i], std::byte{0}) << "PAD";
  const octets field(plain.end() - 4, plain.end());
  EXPECT_EQ(field, crc ? crc_field(covered) : be32(0)) << "CRC field";
  out.assign(plain.begin() + 2, plain.begin() + 2 + static_cast<std::ptrdiff_t>(size));
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(at));
  position_ += at;
  return true;
}

}  // namespace iwarp::stream_test
