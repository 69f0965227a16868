// Internal to the tests of mpa.
// Streams written the slow way, group by group as RFC 5044 tells it, with a CRC computed bit by bit; a sink that notes
// what it is handed; ways of feeding a receiver.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "mpa/fpdu_rx.hpp"
#include "mpa/rx_memory.hpp"
#include "mpa/tx_batch.hpp"
#include "mpa/ulpdu.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/random.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

namespace iwarp::mpa::test {

using octets = std::vector<std::byte>;
using test_support::from_hex;
using test_support::random_source;
using test_support::to_hex;

/// The error, or success: a test that finds a value where it wants an error fails instead of reading what is not there.
template <class T>
std::error_code error_of(const result<T>& r) {
  return r ? std::error_code() : r.error();
}

/// `size` octets first, first + 1, ... modulo 256.
inline octets counting(std::size_t size, std::size_t first = 0) {
  octets out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>((first + i) & 0xff);
  return out;
}

inline void append(octets& to, const_bytes more) { to.insert(to.end(), more.begin(), more.end()); }

inline octets operator+(octets a, const octets& b) {
  append(a, b);
  return a;
}

/// CRC32c one bit at a time, by the definition in RFC 5044 s4.4: shares nothing with the code under test.
inline std::uint32_t slow_crc32c(const_bytes data) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte b : data) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

/// A ULPDU and the stream position of its ULPDU_Length.
struct delivery {
  octets ulpdu;
  std::uint64_t position = 0;
  bool operator==(const delivery&) const = default;
};
inline void PrintTo(const delivery& d, std::ostream* out) {
  *out << d.ulpdu.size() << " octets at " << d.position << ": " << to_hex(d.ulpdu).substr(0, 64);
}

/// Where one FPDU lies in a slow_stream: its leading marker belongs to it.
struct extent_of_fpdu {
  std::size_t begin = 0;
  std::size_t length_field = 0;
  std::size_t crc_field = 0;
  std::size_t end = 0;
};

/// The sender's loop of RFC 5044 s4, group of four by group of four.
class slow_stream {
 public:
  slow_stream(bool crc, bool markers, std::uint64_t position = 0) : crc_(crc), markers_(markers), start_(position) {}

  void add(const octets& ulpdu, std::byte pad = std::byte{0}) {
    octets body = {static_cast<std::byte>(ulpdu.size() >> 8), static_cast<std::byte>(ulpdu.size() & 0xff)};
    append(body, ulpdu);
    while (body.size() % 4 != 0) body.push_back(pad);
    extent_of_fpdu where{.begin = wire.size()};
    if (marker_here()) put_marker(0);
    where.length_field = wire.size();
    for (std::size_t at = 0; at < body.size(); at += 4) {
      if (at != 0 && marker_here()) put_marker(wire.size() - where.length_field);
      append(wire, const_bytes{body}.subspan(at, 4));
    }
    if (marker_here()) put_marker(wire.size() - where.length_field);
    where.crc_field = wire.size();
    wire.resize(wire.size() + 4);
    where.end = wire.size();
    fpdus.push_back(where);
    expected.push_back({ulpdu, start_ + where.length_field});
    if (crc_) repair(fpdus.size() - 1);
  }

  /// Recomputes the CRC field of an FPDU that a test has changed.
  void repair(std::size_t index) {
    const extent_of_fpdu& f = fpdus[index];
    const std::uint32_t crc = slow_crc32c(const_bytes{wire}.subspan(f.begin, f.crc_field - f.begin));
    for (std::size_t i = 0; i < 4; ++i) wire[f.crc_field + i] = static_cast<std::byte>((crc >> (8 * i)) & 0xff);
  }

  [[nodiscard]] bool crc() const { return crc_; }
  [[nodiscard]] bool markers() const { return markers_; }
  [[nodiscard]] std::uint64_t start() const { return start_; }

  octets wire;
  std::vector<extent_of_fpdu> fpdus;
  std::vector<delivery> expected;

 private:
  [[nodiscard]] bool marker_here() const { return markers_ && (start_ + wire.size()) % 512 == 0; }
  void put_marker(std::size_t distance) {
    append(wire, octets{std::byte{0}, std::byte{0}, static_cast<std::byte>((distance >> 8) & 0xff),
                        static_cast<std::byte>(distance & 0xff)});
  }

  bool crc_;
  bool markers_;
  std::uint64_t start_;
};

/// Notes every ULPDU. `answer`, if set, is asked first: it may hold the ULPDU or refuse it.
class noting_sink : public ulpdu_sink {
 public:
  result<ulpdu_answer> on_ulpdu(const ulpdu& unit) noexcept override {
    ++offers;
    if (answer) {
      const result<ulpdu_answer> decided = answer(unit);
      if (!decided || *decided == ulpdu_answer::held) return decided;
    }
    delivery d{.ulpdu = octets(unit.size()), .position = unit.stream_offset()};
    unit.copy_to(0, d.ulpdu);
    const octets head(unit.head().begin(), unit.head().end());
    const std::size_t head_size = std::min(unit.size(), ulpdu::max_head);
    head_is_good = head_is_good && head.size() == head_size && std::equal(head.begin(), head.end(), d.ulpdu.begin());
    got.push_back(std::move(d));
    return ulpdu_answer::taken;
  }

  std::function<result<ulpdu_answer>(const ulpdu&)> answer;
  std::vector<delivery> got;
  std::size_t offers = 0;
  bool head_is_good = true;
};

/// Overwrites the shared staging buffer, as another connection of the domain would.
inline void scribble(rx_memory& memory) { std::ranges::fill(memory.staging().first(4096), std::byte{0xEE}); }

/// Everything a batch has left to send, and the batch emptied.
inline octets drain(tx_batch& batch) {
  octets out;
  for (const gather_piece& p : batch.pieces()) append(out, as_const_bytes(p.data, p.size));
  batch.advance(batch.size());
  return out;
}

}  // namespace iwarp::mpa::test
