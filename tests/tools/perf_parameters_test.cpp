#include "tools/perf/parameters.hpp"

#include <gtest/gtest.h>

#include <array>

namespace iwarp::tools::perf {
namespace {

constexpr parameters example{.op = operation::send,
                             .latency = true,
                             .size = 0x01020304 & 0x03ffffff,
                             .depth = 0x1234,
                             .buffer = {.key = {0x21222324}, .offset = 0x3132333435363738}};

std::array<std::byte, parameters::octets> wire_of(const parameters& p) {
  std::array<std::byte, parameters::octets> out;
  p.emit(out);
  return out;
}

TEST(PerfParameters, ComeBackAsTheyWere) {
  const auto wire = wire_of(example);
  const auto back = parameters::parse(wire);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->op, example.op);
  EXPECT_EQ(back->latency, example.latency);
  EXPECT_EQ(back->size, example.size);
  EXPECT_EQ(back->depth, example.depth);
  EXPECT_EQ(back->buffer.key, example.buffer.key);
  EXPECT_EQ(back->buffer.offset, example.buffer.offset);
  for (std::size_t n = 0; n < wire.size(); ++n) EXPECT_FALSE(parameters::parse(const_bytes(wire).first(n))) << n;
}

TEST(PerfParameters, OutOfRangeIsRefused) {
  for (const auto& [at, value] : {std::pair<std::size_t, unsigned>{0, 0},
                                  {3, 0},
                                  {4, 0},
                                  {4, 2},
                                  {5, 0},
                                  {5, 4},
                                  {6, 2},
                                  {7, 1},
                                  {8, 0xff},
                                  {12, 1}}) {
    auto wire = wire_of(example);
    wire[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(parameters::parse(wire)) << at << " " << value;
  }
  parameters p = example;
  p.size = 0;
  EXPECT_FALSE(parameters::parse(wire_of(p)));
  p = example;
  p.depth = 0;
  EXPECT_FALSE(parameters::parse(wire_of(p)));
}

TEST(PerfGrant, ComesBackAsItWas) {
  std::array<std::byte, grant::octets> wire;
  grant{.buffer = {.key = {0x21222324}, .offset = 0x3132333435363738}}.emit(wire);
  const auto back = grant::parse(wire);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->buffer.key.value, 0x21222324u);
  EXPECT_EQ(back->buffer.offset, 0x3132333435363738u);
  for (std::size_t n = 0; n < wire.size(); ++n) EXPECT_FALSE(grant::parse(const_bytes(wire).first(n))) << n;
  wire[4] = std::byte{2};
  EXPECT_FALSE(grant::parse(wire)) << "another version";
}

}  // namespace
}  // namespace iwarp::tools::perf
