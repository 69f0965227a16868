// IP down to TCP: fragments in any order, extension headers, lengths that are not the frame's.
#include "tools/dump/ip_packet.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/dump/synthetic.hpp"

namespace iwarp::dump_test {
namespace {

using dump::ip_reader;

octets ipv4(const octets& payload, std::size_t at = 0, bool more = false, std::uint16_t id = 7, unsigned protocol = 6) {
  octets out = from_hex("4500 0000 0000 0000 4000 0000 c0000201 c0000202");
  const mutable_bytes h(out);
  store_be(h.subspan(2).first<2>(), static_cast<std::uint16_t>(20 + payload.size()));
  store_be(h.subspan(4).first<2>(), id);
  store_be(h.subspan(6).first<2>(), static_cast<std::uint16_t>((more ? 0x2000u : 0u) | at / 8));
  out[9] = static_cast<std::byte>(protocol);
  return out + payload;
}

octets ipv6(unsigned next, const octets& payload) {
  octets out = from_hex("60000000 0000 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002");
  store_be(mutable_bytes(out).subspan(4).first<2>(), static_cast<std::uint16_t>(payload.size()));
  out[6] = static_cast<std::byte>(next);
  return out + payload;
}

octets fragment6(const octets& payload, std::size_t at, bool more) {
  octets header = from_hex("06000000 01020304");
  store_be(mutable_bytes(header).subspan(2).first<2>(), static_cast<std::uint16_t>(at | (more ? 1u : 0u)));
  return header + payload;
}

octets part(const octets& whole, std::size_t from, std::size_t to) {
  return {whole.begin() + static_cast<std::ptrdiff_t>(from), whole.begin() + static_cast<std::ptrdiff_t>(to)};
}

octets as_octets(const std::optional<dump::ip_payload>& p) {
  return p ? octets(p->octets.begin(), p->octets.end()) : octets{};
}

TEST(IpPacket, LinkLayerPaddingIsNoPayload) {
  ip_reader reader;
  const octets payload = counted(20);
  const octets packet = ipv4(payload) + octets(26, std::byte{0xEE});  // what is read refers to it
  const auto got = reader.read(packet);
  EXPECT_EQ(as_octets(got), payload);
  EXPECT_EQ(got->length, 20u);
  EXPECT_EQ(as_octets(reader.read(ipv6(6, payload) + octets(6))), payload);
}

TEST(IpPacket, ACutPacketTellsItsLength) {
  ip_reader reader;
  octets packet = ipv4(counted(100));
  packet.resize(70);
  const auto got = reader.read(packet);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->octets.size(), 50u);
  EXPECT_EQ(got->length, 100u);
}

TEST(IpPacket, LengthZeroIsThatOfTheFrame) {
  // Captured before segmentation offload filled it in.
  ip_reader reader;
  octets packet = ipv4(counted(3000));
  packet[2] = packet[3] = std::byte{0};
  EXPECT_EQ(as_octets(reader.read(packet)), counted(3000));
}

TEST(IpPacket, EveryPrefixIsNothingOrAPrefix) {
  for (const octets& whole : {ipv4(counted(40)), ipv6(60, from_hex("06000104 00000000") + counted(40))}) {
    for (std::size_t n = 0; n != whole.size(); ++n) {
      ip_reader reader;
      const octets got = as_octets(reader.read(part(whole, 0, n)));
      EXPECT_TRUE(std::equal(got.begin(), got.end(), counted(40).begin())) << n;
    }
  }
}

TEST(IpPacket, OtherProtocolsAreNothing) {
  ip_reader reader;
  EXPECT_FALSE(reader.read(ipv4(counted(40), 0, false, 7, 17)));
  EXPECT_FALSE(reader.read(ipv6(17, counted(40))));
  EXPECT_FALSE(reader.read(ipv6(59, counted(40))));
  EXPECT_FALSE(reader.read(from_hex("00")));
}

TEST(IpPacket, ExtensionHeadersInARow) {
  ip_reader reader;
  const octets payload = counted(33);
  const octets hop = from_hex("2b000104 00000000");                                   // then routing
  const octets routing = from_hex("33000000 00000000");                               // then authentication
  const octets authentication = from_hex("3c040000 00000001 00000002") + octets(12);  // then destination options
  const octets options = from_hex("2c010104 00000000 0104000000000000");              // then an atomic fragment
  const octets got =
      as_octets(reader.read(ipv6(0, hop + routing + authentication + options + fragment6(payload, 0, false))));
  EXPECT_EQ(got, payload);
}

TEST(IpPacket, FragmentsInEveryOrder) {
  const octets payload = counted(56);
  std::vector<octets> v4{ipv4(part(payload, 0, 16), 0, true), ipv4(part(payload, 16, 40), 16, true),
                         ipv4(part(payload, 40, 56), 40, false)};
  std::vector<octets> v6{ipv6(44, fragment6(part(payload, 0, 16), 0, true)),
                         ipv6(44, fragment6(part(payload, 16, 40), 16, true)),
                         ipv6(44, fragment6(part(payload, 40, 56), 40, false))};
  for (auto& fragments : {v4, v6}) {
    std::vector<std::size_t> order{0, 1, 2};
    do {
      ip_reader reader;
      EXPECT_FALSE(reader.read(fragments[order[0]]));
      EXPECT_FALSE(reader.read(fragments[order[1]]));
      EXPECT_EQ(as_octets(reader.read(fragments[order[2]])), payload);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST(IpPacket, TheFirstFragmentOfAnOverlapCounts) {
  ip_reader reader;
  EXPECT_FALSE(reader.read(ipv4(counted(24), 0, true)));
  EXPECT_FALSE(reader.read(ipv4(octets(24, std::byte{0xFF}), 16, true)));
  const octets got = as_octets(reader.read(ipv4(octets(8, std::byte{0xAA}), 40, false)));
  EXPECT_EQ(got, counted(24) + octets(16, std::byte{0xFF}) + octets(8, std::byte{0xAA}));
}

TEST(IpPacket, FragmentsOfDifferentPacketsAreNotMixed) {
  ip_reader reader;
  EXPECT_FALSE(reader.read(ipv4(counted(16), 0, true, 1)));
  EXPECT_FALSE(reader.read(ipv4(counted(8), 16, false, 2)));
  EXPECT_EQ(as_octets(reader.read(ipv4(counted(8, 16), 16, false, 1))), counted(24));
}

TEST(IpPacket, FragmentsThatCannotBeAreRefused) {
  ip_reader reader;
  EXPECT_FALSE(reader.read(ipv4(counted(1400), 65528, false)));  // beyond 64 KiB
  EXPECT_FALSE(reader.read(ipv4({}, 8, false)));
  EXPECT_FALSE(reader.read(ipv4(counted(8), 16, false, 9)));
  EXPECT_FALSE(reader.read(ipv4(counted(8), 24, false, 9)));  // two ends
  EXPECT_EQ(as_octets(reader.read(ipv4(counted(16), 0, true, 9))).size(), 24u);
}

}  // namespace
}  // namespace iwarp::dump_test
