// The table from every error of this stack to its wire code.
#include "rdmap/terminate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>
#include <utility>

namespace iwarp::rdmap {

inline void PrintTo(const term_entry& e, std::ostream* out) {
  *out << describe(e.code) << ", headers " << static_cast<int>(e.headers);
}

namespace {

using entry = std::optional<term_entry>;

constexpr entry none(std::uint8_t layer, std::uint8_t type, std::uint8_t code) {
  return term_entry{{layer, type, code}, term_headers::none};
}
constexpr entry ddp_header(std::uint8_t layer, std::uint8_t type, std::uint8_t code) {
  return term_entry{{layer, type, code}, term_headers::ddp};
}
constexpr entry read_header(std::uint8_t layer, std::uint8_t type, std::uint8_t code) {
  return term_entry{{layer, type, code}, term_headers::ddp_and_read_request};
}
constexpr entry silence = std::nullopt;

/// The table must hold every enumerator once, in order, and agree with both ways to ask.
template <class Errc, std::size_t n>
void check_table(const std::array<std::pair<Errc, entry>, n>& table) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto& [e, want] = table[i];
    SCOPED_TRACE(make_error_code(e).message());
    EXPECT_EQ(static_cast<std::size_t>(e), i + 1);
    EXPECT_EQ(terminate_for(e), want);
    EXPECT_EQ(terminate_for(make_error_code(e)), want);
  }
  // An enumerator added behind the last one here would have words.
  EXPECT_EQ(make_error_code(static_cast<Errc>(n + 1)).message().rfind("unknown", 0), 0u);
}

// RDMAP-48 RDMAP-65: CRC and marker errors, and the three of enhanced set-up; nothing about start-up frames, lost
// connections or silence.
TEST(TerminateCodes, Mpa) {
  using mpa::errc;
  check_table(std::array{
      std::pair{errc::tcp_lost, silence},
      std::pair{errc::crc_mismatch, none(2, 0, 0x02)},
      std::pair{errc::marker_mismatch, none(2, 0, 0x03)},
      std::pair{errc::bad_key, silence},
      std::pair{errc::same_role, silence},
      std::pair{errc::bad_revision, silence},
      std::pair{errc::bad_private_data, silence},
      std::pair{errc::unexpected_octets, silence},
      std::pair{errc::not_enhanced, silence},
      std::pair{errc::startup_cut_short, silence},
      std::pair{errc::startup_timeout, silence},
      std::pair{errc::first_fpdu_timeout, silence},
      std::pair{errc::fpdu_timeout, silence},
      std::pair{errc::rejected, silence},
      std::pair{errc::markers_refused, silence},
      std::pair{errc::local_catastrophic, none(2, 0, 0x05)},
      std::pair{errc::insufficient_ird, none(2, 0, 0x06)},
      std::pair{errc::no_matching_rtr, none(2, 0, 0x07)},
  });
}

// DDP-04 DDP-26 DDP-27 DDP-28 DDP-29 DDP-30 DDP-31 DDP-32 DDP-33 DDP-34 DDP-35 RDMAP-62
TEST(TerminateCodes, Ddp) {
  using ddp::errc;
  check_table(std::array{
      std::pair{errc::local_catastrophic, none(1, 0, 0x00)},
      std::pair{errc::segment_too_short, none(1, 0, 0x00)},
      std::pair{errc::tagged_invalid_stag, ddp_header(1, 1, 0x00)},
      std::pair{errc::tagged_base_or_bounds, ddp_header(1, 1, 0x01)},
      std::pair{errc::tagged_not_associated, ddp_header(1, 1, 0x02)},
      std::pair{errc::tagged_no_access, ddp_header(1, 1, 0x02)},
      std::pair{errc::tagged_offset_wrap, ddp_header(1, 1, 0x03)},
      std::pair{errc::tagged_bad_version, ddp_header(1, 1, 0x04)},
      std::pair{errc::untagged_invalid_queue, ddp_header(1, 2, 0x01)},
      std::pair{errc::untagged_no_buffer, ddp_header(1, 2, 0x02)},
      std::pair{errc::untagged_msn_out_of_range, ddp_header(1, 2, 0x03)},
      std::pair{errc::untagged_invalid_offset, ddp_header(1, 2, 0x04)},
      std::pair{errc::untagged_too_long, ddp_header(1, 2, 0x05)},
      std::pair{errc::untagged_bad_version, ddp_header(1, 2, 0x06)},
  });
}

// RDMAP-03 RDMAP-04 RDMAP-22 RDMAP-37 RDMAP-46 RDMAP-48 RDMAP-61 RDMAP-62 RDMAP-63 RDMAP-69
TEST(TerminateCodes, Rdmap) {
  check_table(std::array{
      std::pair{errc::local_catastrophic, none(0, 0, 0x00)},
      std::pair{errc::source_invalid_stag, read_header(0, 1, 0x00)},
      std::pair{errc::source_base_or_bounds, read_header(0, 1, 0x01)},
      std::pair{errc::source_no_access, read_header(0, 1, 0x02)},
      std::pair{errc::source_not_associated, read_header(0, 1, 0x03)},
      std::pair{errc::source_offset_wrap, read_header(0, 1, 0x04)},
      std::pair{errc::invalidate_invalid_stag, ddp_header(0, 1, 0x00)},
      std::pair{errc::invalidate_no_access, ddp_header(0, 1, 0x02)},
      std::pair{errc::invalidate_not_associated, ddp_header(0, 1, 0x03)},
      std::pair{errc::cannot_invalidate, ddp_header(0, 1, 0x09)},
      std::pair{errc::bad_version, ddp_header(0, 2, 0x05)},
      std::pair{errc::unexpected_opcode, ddp_header(0, 2, 0x06)},
      std::pair{errc::stream_catastrophic, ddp_header(0, 2, 0x07)},
      std::pair{errc::message_not_single, ddp_header(0, 2, 0x07)},
      std::pair{errc::peer_closed_with_work, none(0, 2, 0x07)},
      std::pair{errc::cq_overflow, none(0, 2, 0x07)},
      std::pair{errc::device_catastrophic, none(0, 2, 0x08)},
      std::pair{errc::unspecified, ddp_header(0, 2, 0xFF)},
      std::pair{errc::terminated_by_peer, silence},
  });
}

// Errors of elsewhere, and values no enumerator has, are local failures to the peer.
TEST(TerminateCodes, OtherErrorsAreLocalOnes) {
  for (const std::error_code e : {std::make_error_code(std::errc::io_error), std::error_code(2, std::system_category()),
                                  std::error_code(99, mpa::error_category()),
                                  std::error_code(99, ddp::error_category()), std::error_code(99, error_category())}) {
    EXPECT_EQ(terminate_for(e), none(0, 0, 0x00)) << e.message();
  }
}

// What this stack sends, it can also name.
TEST(TerminateCodes, EveryCodeSentHasWords) {
  const auto check = [](const entry& e) {
    if (e) {
      EXPECT_EQ(describe(e->code).find("unknown"), std::string::npos) << describe(e->code);
    }
  };
  for (int value = 1; value <= static_cast<int>(mpa::errc::no_matching_rtr); ++value) {
    check(terminate_for(static_cast<mpa::errc>(value)));
  }
  for (int value = 1; value <= static_cast<int>(ddp::errc::untagged_bad_version); ++value) {
    check(terminate_for(static_cast<ddp::errc>(value)));
  }
  for (int value = 1; value <= static_cast<int>(errc::terminated_by_peer); ++value) {
    check(terminate_for(static_cast<errc>(value)));
  }
}

}  // namespace
}  // namespace iwarp::rdmap
