// Internal to tests.
// The wire as a test's author reads it in the RFCs: start-up frames, segments and FPDUs put together octet by octet,
// and taken apart again. Written apart from the layers under test and without their help, CRC included.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace iwarp::stream_test {

using octets = std::vector<std::byte>;

[[nodiscard]] octets operator+(octets left, const octets& right);
[[nodiscard]] octets be16(std::uint16_t value);
[[nodiscard]] octets be32(std::uint32_t value);
[[nodiscard]] octets be64(std::uint64_t value);
/// Octets that differ from seed to seed and along the way.
void fill(mutable_bytes out, std::uint64_t seed);
[[nodiscard]] octets pattern(std::size_t size, std::uint64_t seed);
/// CRC32c bit by bit.
[[nodiscard]] std::uint32_t reference_crc32c(const_bytes in);

// Start-up (RFC 5044 s7.1.1, RFC 6581 s9)
// ------------------------------------------------------------------------------

inline constexpr std::uint8_t flag_m = 0x80, flag_c = 0x40, flag_r = 0x20, flag_s = 0x10;
inline constexpr std::uint16_t flag_a = 0x8000, flag_b = 0x4000;  // beside IRD
inline constexpr std::uint16_t rtr_c = 0x8000, rtr_d = 0x4000;    // beside ORD

struct startup_words {
  bool reply = false;
  std::uint8_t flags = flag_c;
  std::uint8_t revision = 1;
  std::uint16_t ird_word = 0, ord_word = 0;  // with their flags; sent iff flags has S
  octets data = {};
};
[[nodiscard]] octets startup_frame(const startup_words& words);
/// Takes a frame apart; nothing when `in` is not exactly one.
[[nodiscard]] std::optional<startup_words> read_startup_frame(const_bytes in);

// Segments (RFC 5041 s4, RFC 5040 s4)
// ----------------------------------------------------------------------------------

struct untagged {
  std::uint8_t op = 3;
  std::uint32_t queue = 0, sequence = 1, offset = 0;
  bool last = true;
  std::uint32_t invalidate = 0;
  std::uint8_t ddp_version = 1, rdmap_version = 1;
};
[[nodiscard]] octets segment(const untagged& header, const octets& payload = {});

struct tagged {
  std::uint8_t op = 0;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;
  bool last = true;
  std::uint8_t ddp_version = 1, rdmap_version = 1;
};
[[nodiscard]] octets segment(const tagged& header, const octets& payload = {});

struct read_words {
  std::uint32_t sink = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t size = 0;
  std::uint32_t source = 0;
  std::uint64_t source_offset = 0;
};
[[nodiscard]] octets read_request_header(const read_words& words);
[[nodiscard]] octets read_request_segment(std::uint32_t sequence, const read_words& words);

/// A Terminate: `offender` is the ULPDU that it complains of; its header is included, and 28 octets behind it iff
/// `with_request`.
[[nodiscard]] octets terminate_segment(std::uint8_t layer_and_type, std::uint8_t code, const octets& offender = {},
                                       bool with_request = false);

// FPDUs (RFC 5044 s4)
// --------------------------------------------------------------------------------------------------

/// Frames one ULPDU after another, group of four by group of four.
class fpdu_framer {
 public:
  bool crc = true;
  bool markers = false;
  [[nodiscard]] octets frame(const octets& ulpdu);
  [[nodiscard]] std::uint64_t position() const { return position_; }

 private:
  std::uint64_t position_ = 0;
};

/// Takes a stream apart and checks all of it: markers, PAD, CRC.
class fpdu_splitter {
 public:
  bool crc = true;
  bool markers = false;
  /// The ULPDUs that `in` completes. A wrong marker, PAD or CRC fails the test.
  std::vector<octets> split(const_bytes in);
  /// Octets of an FPDU that is not complete.
  [[nodiscard]] std::size_t rest() const { return pending_.size(); }

 private:
  bool one(octets& out);
  octets pending_;
  std::uint64_t position_ = 0;
};

}  // namespace iwarp::stream_test
