// FPDUs in every kind of stream: markers each way, cuts, holes, beginnings that the capture has not. The cases that
// Wireshark 4.0 gets wrong are among them (catalog.cpp); tshark_test.py holds the two against each other.
#include <gtest/gtest.h>

#include "tests/dump/catalog.hpp"
#include "tests/dump/collected.hpp"
#include "tests/dump/synthetic.hpp"

namespace iwarp::dump_test {
namespace {

class Catalog : public testing::TestWithParam<entry> {};

TEST_P(Catalog, DecodesAsItWasMade) {
  const entry& c = GetParam();
  const collected got = analyse(c.frames, c.link_type, c.options);
  EXPECT_EQ(got.operations(), c.operations);
  EXPECT_EQ(got.rules(), c.rules) << (got.problems.empty() ? "" : got.problems[0].text);
  EXPECT_EQ(got.summary.fpdus, c.fpdus);
  EXPECT_EQ(got.summary.lost_octets, c.lost);
  EXPECT_EQ(got.summary.streams, c.streams);
}

INSTANTIATE_TEST_SUITE_P(Synthetic, Catalog, testing::ValuesIn(catalog()),
                         [](const auto& p) { return p.param.test_name(); });

}  // namespace
}  // namespace iwarp::dump_test
