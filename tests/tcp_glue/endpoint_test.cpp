#include "tcp_glue/endpoint.hpp"

#include "tcp_glue/error.hpp"

#include <gtest/gtest.h>

#include <net/if.h>

#include <set>

namespace iwarp::tcp_glue {
namespace {

struct address_case {
  std::string_view text;
  host_port want;
};

TEST(Endpoint, ParsesEveryForm) {
  const address_case cases[] = {
      {"192.0.2.1", {"192.0.2.1", 7471, false}},
      {"192.0.2.1:1", {"192.0.2.1", 1, true}},
      {"192.0.2.1:65535", {"192.0.2.1", 65535, true}},
      {"192.0.2.1:0", {"192.0.2.1", 0, true}},
      {"storage-1.example.com", {"storage-1.example.com", 7471, false}},
      {"storage-1.example.com:7471", {"storage-1.example.com", 7471, true}},
      {":7000", {"", 7000, true}},
      {"::", {"::", 7471, false}},
      {"::1", {"::1", 7471, false}},
      {"2001:db8::1:7000", {"2001:db8::1:7000", 7471, false}},  // the last group is no port
      {"1:2:3:4:5:6:7:8", {"1:2:3:4:5:6:7:8", 7471, false}},
      {"::ffff:192.0.2.1", {"::ffff:192.0.2.1", 7471, false}},
      {"[::]:7000", {"::", 7000, true}},
      {"[2001:db8::1]", {"2001:db8::1", 7471, false}},
      {"[2001:db8::1]:7000", {"2001:db8::1", 7000, true}},
      {"fe80::1%eth0", {"fe80::1%eth0", 7471, false}},
      {"[fe80::1%eth0]:7000", {"fe80::1%eth0", 7000, true}},
      {"localhost:00080", {"localhost", 80, true}},
  };
  for (const auto& c : cases) {
    const auto got = parse_host_port(c.text, 7471);
    ASSERT_TRUE(got) << c.text << ": " << got.error().message();
    EXPECT_EQ(*got, c.want) << c.text << " gave " << got->host << " port " << got->port;
  }
}

TEST(Endpoint, RefusesWhatIsNoAddress) {
  using namespace std::string_view_literals;
  for (const auto text : {""sv,          "["sv,         "[]"sv,           "[]:1"sv,
                          "[::1"sv,      "[::1]7000"sv, "[::1]]:1"sv,     "[192.0.2.1]:1"sv,
                          "[name]:1"sv,  "]:1"sv,       "a:b:c"sv,        "1:2:3:4:5:6:7:8:9"sv,
                          ":::"sv,       "fe80::1%"sv,  "[fe80::1%]:1"sv, "name%eth0"sv,
                          "two words"sv, "a\nb"sv,      "\0"sv,           "host\0.example:1"sv,
                          "::1\0%x"sv,   "host/24"sv})
    EXPECT_EQ(parse_host_port(text, 1), fail(errc::bad_address)) << "'" << text << "'";
  EXPECT_EQ(parse_host_port(std::string(4096, 'a'), 1), fail(errc::bad_address));
}

TEST(Endpoint, RefusesWhatIsNoPort) {
  for (const std::string_view text :
       {"host:", "host:65536", "host:-1", "host:+1", "host: 1", "host:1 ", "host:0x10", "host:http", "http://host",
        "host:99999999999999999999", "[::1]:", "[::1]:x", ":", "[::1]:1:2"})
    EXPECT_EQ(parse_host_port(text, 1), fail(errc::bad_port)) << "'" << text << "'";
}

TEST(Endpoint, WritesWhatItReads) {
  const std::string interface_name = [] {
    char name[IF_NAMESIZE] = {};
    return std::string(if_indextoname(1, name) ? name : "");
  }();
  std::vector<std::string> texts = {"192.0.2.1:7471", "0.0.0.0:0", "[2001:db8::1]:7471", "[::]:65535"};
  if (!interface_name.empty()) texts.push_back("[fe80::1%" + interface_name + "]:7471");
  for (const auto& text : texts) {
    const auto parsed = parse_host_port(text, 0);
    ASSERT_TRUE(parsed) << text;
    const auto found = resolve(*parsed, false);
    ASSERT_TRUE(found) << text << ": " << found.error().message();
    ASSERT_EQ(found->size(), 1U) << text;
    EXPECT_EQ(to_string(found->front()), text);
  }
}

// B028: a link-local address means nothing without its interface.
TEST(Endpoint, KeepsTheScopeOfALinkLocalAddress) {
  const auto found = resolve({"fe80::1%1", 7471, true}, false);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->front().address().to_v6().scope_id(), 1U);
}

TEST(Endpoint, PassiveWithoutHostIsBothWildcardsSixFirst) {
  const auto found = resolve({"", 7471, true}, true);
  ASSERT_TRUE(found) << found.error().message();
  for (const auto& e : *found) {
    EXPECT_TRUE(e.address().is_unspecified()) << to_string(e);
    EXPECT_EQ(e.port(), 7471);
  }
  EXPECT_TRUE(std::is_sorted(found->begin(), found->end(), [](const endpoint& x, const endpoint& y) {
    return x.address().is_v6() && !y.address().is_v6();
  }));
}

TEST(Endpoint, ActiveWithoutHostIsLoopback) {
  const auto found = resolve({"", 7471, true}, false);
  ASSERT_TRUE(found) << found.error().message();
  for (const auto& e : *found) EXPECT_TRUE(e.address().is_loopback()) << to_string(e);
}

TEST(Endpoint, SaysThatAHostIsUnknown) {
  // A label of 64 octets cannot exist in DNS, so that no name server need be asked.
  const auto found = resolve({std::string(64, 'x') + ".invalid", 7471, true}, false);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), errc::host_not_found) << found.error().message();
}

TEST(TcpGlueErrors, EachHasItsOwnMessage) {
  std::set<std::string> seen;
  for (int value = 1; value <= static_cast<int>(errc::resolver_failed); ++value) {
    const std::error_code ec = static_cast<errc>(value);
    EXPECT_STREQ(ec.category().name(), "iwarp.tcp_glue");
    EXPECT_GT(ec.message().size(), 20U);
    EXPECT_TRUE(seen.insert(ec.message()).second) << ec.message();
  }
  EXPECT_NE(std::error_code(99, error_category()).message(), "");
}

}  // namespace
}  // namespace iwarp::tcp_glue
