// Internal to the tests of mpa.
// Octets of whole FPDUs and of marker-bearing streams, worked out by hand and checked by a second implementation
// (Wireshark's dissector); the CRCs of the marker stream at 0x1EC and of the first FPDU are printed in RFC 5044 s4.4.
// Threading: pure functions.  Time: none.  I/O: none.
#pragma once

#include "tests/mpa/streams.hpp"

#include <string>
#include <vector>

namespace iwarp::mpa::test {

/// One FPDU without markers: ULPDU_Length, ULPDU, PAD, CRC field, each as hexadecimal text.
struct fpdu_vector {
  std::string name;
  std::string length;
  std::string ulpdu_text;
  std::string pad;
  std::string crc_field;
  bool crc = true;

  [[nodiscard]] octets ulpdu() const { return from_hex(ulpdu_text); }
  [[nodiscard]] octets wire() const { return from_hex(length + ulpdu_text + pad + crc_field); }
};
inline void PrintTo(const fpdu_vector& v, std::ostream* out) { *out << v.name; }

/// first, first + 1, ... last as hexadecimal text.
inline std::string run(unsigned first, unsigned last) { return to_hex(counting(last - first + 1, first)); }

inline std::vector<fpdu_vector> fpdu_vectors() {
  return {
      {"RtrWrite", "000e", "c140 00000000 00000000 00000000", "", "a30572ab"},
      {"RtrWriteOfSiwCrcOff", "000e", "c140 00000001 00000000 00000000", "", "00000000", false},
      {"RtrReadRequest", "002e",
       "4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000"
       "00000000 00000000 00000000 00000000",
       "", "f2c6dd3d"},
      {"RtrSend", "0012", "4143 00000000 00000000 00000001 00000000", "", "587be8c4"},
      {"SendHello", "0017", "4143 00000000 00000000 00000001 00000000 68656c6c6f", "000000", "b990b10c"},
      {"SendSolicited", "0014", "4145 00000000 00000000 00000002 00000000 6869", "0000", "4c3a21a5"},
      {"SendInvalidate", "0012", "4144 00012345 00000000 00000003 00000000", "", "f09b88ee"},
      {"Write", "0016", "c140 11223344 01020304 05060708 0001020304050607", "", "bea65ff0"},
      {"ReadRequest", "002e",
       "4141 00000000 00000001 00000001 00000000 aabbcc01 00000000 00001000 00001000 11223344 00000000 00002000", "",
       "fca62c49"},
      {"ReadResponse", "0012", "c142 aabbcc01 00000000 00001ffc deadbeef", "", "92e19f88"},
      {"SendFirstSegment", "0080", "0143 00000000 00000000 00000001 00000000" + run(0, 0x6d), "0000", "d691c31a"},
      {"SendLastSegment", "006c", "4143 00000000 00000000 00000001 0000006e" + run(0x6e, 0xc7), "0000", "4dc905ed"},
      {"WriteFirstSegment", "0080", "8140 11223344 00000000 00001000" + run(0, 0x71), "0000", "6e644278"},
      {"WriteLastSegment", "0064", "c140 11223344 00000000 00001072" + run(0x72, 0xc7), "0000", "02c0e7ac"},
      {"Immediate", "001a", "4148 00000000 00000000 00000001 00000000 0102030405060708", "", "06c22805"},
      {"ImmediateSolicited", "001a", "4149 00000000 00000000 00000002 00000000 1112131415161718", "", "9219349b"},
      {"FetchAdd", "0046",
       "414a 00000000 00000001 00000001 00000000 00000000 00000007 11223344 00000000 00002000 00000000 00000001"
       "00000000 00000000 00000000 00000000 ffffffff ffffffff",
       "", "56ce8643"},
      {"CmpSwap", "0046",
       "414a 00000000 00000001 00000002 00000000 00000002 00000008 11223344 00000000 00002000 00000000 00000055"
       "ffffffff ffffffff 00000000 0000002a ffffffff ffffffff",
       "", "72705c4f"},
      {"AtomicResponse", "001e", "414b 00000000 00000003 00000001 00000000 00000007 00000000 00000029", "", "b9ebafe8"},
      {"TerminateInsufficientIrd", "0016", "4147 00000000 00000002 00000001 00000000 20060000", "", "6540fb1b"},
      {"Write1400", "0586", "c140 00000001 00000000 00000000" + to_hex(counting(1400)), "", "60d10461"},
  };
}

/// Octets that must be found at a place of a stream.
struct placed_octets {
  std::size_t at;
  test::octets octets;
};

/// A stream with markers: ULPDUs from a position on, and what the wire must hold at some places.
struct marker_vector {
  std::string name;
  std::uint64_t position;
  std::vector<octets> ulpdus;
  std::size_t size;
  std::vector<placed_octets> wire;
};
inline void PrintTo(const marker_vector& v, std::ostream* out) { *out << v.name; }

inline std::vector<marker_vector> marker_vectors() {
  const octets send_1 = from_hex("4143 00000000 00000000 00000001 00000000");
  const octets send_2 = from_hex("4143 00000000 00000000 00000002 00000000");
  const octets write = from_hex("c140 00000001 00000000 00000000");
  return {
      {"FirstFpduOfAStream",
       0,
       {send_1 + from_hex("68656c6c6f")},
       36,
       {{0, from_hex("00000000 00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 7a61e971")}}},
      {"Rfc5044CrcExampleOne",
       0,
       {send_1 + octets(24)},
       52,
       {{0, from_hex("00000000 002a4143 00000000 00000000 00000001 00000000") + octets(24) + from_hex("52239983")}}},
      {"Rfc5044Figure6",
       0x1ec,
       {send_2 + octets(24)},
       52,
       {{0, from_hex("002a4143 00000000 00000000 00000002 00000000 00000014") + octets(24) + from_hex("84925898")}}},
      {"MarkerBetweenPadAndCrc",
       0,
       {send_1 + octets(488), send_2 + from_hex("4142")},
       548,
       {{512, from_hex("000001fc 38cf64e8")},
        {520, from_hex("00144143 00000000 00000000 00000002 00000000 41420000 55ee0344")}}},
      {"MarkerBetweenFpdus",
       0,
       {send_1 + octets(484), send_2 + from_hex("4142")},
       544,
       {{512, from_hex("00000000 00144143 00000000 00000000 00000002 00000000 41420000 d2c53137")}}},
      {"SeveralMarkersInOneFpdu",
       0,
       {write + counting(1400)},
       1432,
       {{0, from_hex("00000000 0586c140 00000001 00000000 00000000 00010203")},
        {508, from_hex("e8e9eaeb 000001fc ecedeeef")},
        {1020, from_hex("e4e5e6e7 000003fc e8e9eaeb")},
        {1424, from_hex("74757677 11d0e0f7")}}},
  };
}

}  // namespace iwarp::mpa::test
