// The RDMAP control octet and the table of opcodes.
#include "rdmap/opcode.hpp"

#include "ddp/header.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace iwarp::rdmap {
namespace {

struct row {
  opcode op;
  std::uint8_t octet1;      // with RV=01
  std::uint16_t first_two;  // with L=1; 0 where no message exists
  bool tagged;
  std::uint32_t queue;
  bool send;
  bool invalidates;
  bool solicited;
};

// RFC 5040 s4.2 and RFC 7306 s4, written down from the text.
constexpr std::array<row, 12> rows{{
    {opcode::write, 0x40, 0xC140, true, 0, false, false, false},
    {opcode::read_request, 0x41, 0x4141, false, 1, false, false, false},
    {opcode::read_response, 0x42, 0xC142, true, 0, false, false, false},
    {opcode::send, 0x43, 0x4143, false, 0, true, false, false},
    {opcode::send_invalidate, 0x44, 0x4144, false, 0, true, true, false},
    {opcode::send_solicited, 0x45, 0x4145, false, 0, true, false, true},
    {opcode::send_solicited_invalidate, 0x46, 0x4146, false, 0, true, true, true},
    {opcode::terminate, 0x47, 0x4147, false, 2, false, false, false},
    {opcode::immediate, 0x48, 0x4148, false, 0, false, false, false},
    {opcode::immediate_solicited, 0x49, 0x4149, false, 0, false, false, true},
    {opcode::atomic_request, 0x4A, 0x414A, false, 1, false, false, false},
    {opcode::atomic_response, 0x4B, 0x414B, false, 3, false, false, false},
}};

// RDMAP-01
TEST(Opcode, ControlOctetHasVersionOneAndNoReservedBits) {
  for (const row& r : rows) {
    EXPECT_EQ(control_octet(r.op), r.octet1);
    EXPECT_EQ(opcode_of(r.octet1), r.op);
    EXPECT_EQ(r.octet1 & version_mask, version_bits);
  }
}

// RDMAP-02: the two reserved bits, and RV, do not change which opcode is read.
TEST(Opcode, HighNibbleIsNotPartOfIt) {
  for (unsigned octet = 0; octet < 256; ++octet) {
    EXPECT_EQ(static_cast<unsigned>(opcode_of(static_cast<std::uint8_t>(octet))), octet & 0x0Fu);
  }
}

// RDMAP-05 RDMAP-09 RDMAP-15 RDMAP-31
TEST(Opcode, EachHasItsModelAndQueue) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const row& r = rows[i];
    EXPECT_EQ(static_cast<std::size_t>(r.op), i);
    const opcode_info& got = info(r.op);
    EXPECT_TRUE(got.assigned) << got.name;
    EXPECT_EQ(got.tagged, r.tagged) << got.name;
    EXPECT_EQ(got.queue, r.queue) << got.name;
    EXPECT_EQ(is_send(r.op), r.send) << got.name;
    EXPECT_EQ(invalidates(r.op), r.invalidates) << got.name;
    EXPECT_EQ(is_solicited(r.op), r.solicited) << got.name;
  }
}

// RDMAP-01 RDMAP-05 DDP-01: the first two octets of a single-segment message of each kind.
TEST(Opcode, FirstTwoOctetsOfEachMessage) {
  for (const row& r : rows) {
    std::array<std::byte, ddp::untagged_header_size> wire{};
    if (info(r.op).tagged) {
      ddp::tagged_header{.ulp_control = control_octet(r.op)}.emit(std::span(wire).first<ddp::tagged_header_size>());
    } else {
      ddp::untagged_header{.ulp_control = control_octet(r.op)}.emit(wire);
    }
    EXPECT_EQ(load_be<std::uint16_t>(std::span<const std::byte>(wire).first<2>()), r.first_two) << info(r.op).name;
  }
}

TEST(Opcode, OthersAreUnassigned) {
  for (unsigned nibble = 0xC; nibble <= 0xF; ++nibble) {
    const auto op = static_cast<opcode>(nibble);
    EXPECT_FALSE(info(op).assigned);
    EXPECT_FALSE(is_send(op));
    EXPECT_FALSE(invalidates(op));
    EXPECT_FALSE(is_solicited(op));
  }
}

TEST(Opcode, EachHasANameOfItsOwn) {
  std::set<std::string_view> seen;
  for (unsigned nibble = 0; nibble <= 0xF; ++nibble) {
    const std::string_view name = info(static_cast<opcode>(nibble)).name;
    EXPECT_FALSE(name.empty()) << nibble;
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace iwarp::rdmap
