#include "tools/copy/protocol.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace iwarp::tools::copy {
namespace {

using octets = std::vector<std::byte>;

template <class Message>
octets wire_of(const Message& message) {
  std::array<std::byte, Message::octets> out;
  message.emit(out);
  return {out.begin(), out.end()};
}

sha256_digest counting_digest() {
  sha256_digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::byte>(i);
  return digest;
}

/// What every message keeps: it comes back as it was, no other length is taken, nor another head.
template <class Message>
void check(const Message& message, unsigned type, bool from_server) {
  const octets wire = wire_of(message);
  ASSERT_EQ(wire.size(), Message::octets);
  const auto back = Message::parse(wire);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, message);
  for (std::size_t n = 0; n < wire.size(); ++n)
    EXPECT_EQ(Message::parse(const_bytes(wire).first(n)).error(), errc::wrong_length) << "prefix " << n;
  octets longer = wire;
  longer.push_back(std::byte{0});
  EXPECT_EQ(Message::parse(longer).error(), errc::wrong_length);

  EXPECT_EQ(std::to_integer<unsigned>(wire[5]), type);
  const auto with = [&wire](std::size_t at, unsigned value) {
    octets changed = wire;
    changed[at] = static_cast<std::byte>(value);
    return changed;
  };
  for (std::size_t at = 0; at < 4; ++at) EXPECT_EQ(Message::parse(with(at, 0x7f)).error(), errc::not_ours);
  for (const unsigned version : {0u, 2u, 255u})
    EXPECT_EQ(Message::parse(with(4, version)).error(), errc::wrong_version);
  for (unsigned other = 0; other < 256; ++other) {
    if (other == type) continue;
    EXPECT_EQ(Message::parse(with(5, other)).error(), errc::wrong_type);
  }
  const unsigned last = from_server ? static_cast<unsigned>(status::read_only) : 0;
  for (unsigned s = 0; s < 256; ++s) EXPECT_EQ(Message::parse(with(6, s)).has_value(), s <= last) << s;
  EXPECT_EQ(Message::parse(with(7, 1)).error(), errc::bad_field);
}

TEST(CopyProtocol, Request) {
  check(request{.op = operation::put, .size = 0x0102030405060708, .name = "a/b"}, 1, false);
  check(request{.op = operation::get, .size = 0, .name = std::string(max_name, 'n')}, 1, false);
}

TEST(CopyProtocol, RequestFields) {
  const octets wire = wire_of(request{.op = operation::put, .size = 7, .name = "name"});
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(wire.data()), 4), "IWCP");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(wire.data() + 24), 4), "name");
  EXPECT_EQ(wire[11], std::byte{4});
  EXPECT_EQ(wire[23], std::byte{7});
  const auto refused = [](octets changed, const std::function<void(octets&)>& change) {
    change(changed);
    return request::parse(changed).error() == errc::bad_field;
  };
  EXPECT_TRUE(refused(wire, [](octets& w) { w[8] = std::byte{0}; })) << "no operation";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[8] = std::byte{3}; })) << "no operation";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[8] = std::byte{2}; })) << "a get has no size";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[9] = std::byte{1}; })) << "reserved";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[15] = std::byte{1}; })) << "reserved";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[11] = std::byte{0}; })) << "no name";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[11] = std::byte{3}; })) << "octets behind the name";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[10] = std::byte{0x04}, w[11] = std::byte{0x01}; })) << "long name";
  EXPECT_TRUE(refused(wire, [](octets& w) { w[16] = std::byte{0x40}; })) << "size";
}

TEST(CopyProtocol, Answer) {
  check(answer{.status = status::ok, .size = 0x0102030405060708}, 2, true);
  check(answer{.status = status::no_space, .size = 0}, 2, true);
  octets wire = wire_of(answer{});
  wire[8] = std::byte{0x7f};
  EXPECT_EQ(answer::parse(wire).error(), errc::bad_field) << "size";
}

TEST(CopyProtocol, Window) {
  const window w{.offset = window_size * 3, .length = window_size, .key = {0x01020304}, .address = 0xfffffffffffffffe};
  check(w, 3, false);
  for (const std::uint32_t length :
       {std::uint32_t{0}, static_cast<std::uint32_t>(window_size + 1), ~std::uint32_t{0}}) {
    window bad = w;
    bad.length = length;
    EXPECT_EQ(window::parse(wire_of(bad)).error(), errc::bad_field) << length;
  }
  window far = w;
  far.offset = max_file_size + 1;
  EXPECT_EQ(window::parse(wire_of(far)).error(), errc::bad_field);
}

TEST(CopyProtocol, WindowDone) {
  check(window_done{.status = status::changed, .offset = 1, .length = 2}, 4, true);
  octets wire = wire_of(window_done{});
  wire[23] = std::byte{1};
  EXPECT_EQ(window_done::parse(wire).error(), errc::bad_field);
}

TEST(CopyProtocol, Finish) { check(finish{.size = 5, .digest = counting_digest()}, 5, false); }
TEST(CopyProtocol, Outcome) { check(outcome{.status = status::ok, .size = 5, .digest = counting_digest()}, 6, true); }

TEST(CopyProtocol, EveryStatusAndErrorHasWords) {
  std::vector<std::string> seen;
  for (unsigned s = 0; s <= static_cast<unsigned>(status::read_only); ++s)
    seen.emplace_back(describe(static_cast<status>(s)));
  for (int e = 1; e <= static_cast<int>(errc::not_a_regular_file); ++e) seen.push_back(error_category().message(e));
  for (const auto& text : seen) EXPECT_EQ(text.find("unknown"), std::string::npos) << text;
}

TEST(CopyProtocol, WindowsAreTheFile) {
  EXPECT_EQ(window_length(1, 0), 1u);
  EXPECT_EQ(window_length(window_size, 0), window_size);
  EXPECT_EQ(window_length(window_size + 1, window_size), 1u);
  EXPECT_EQ(window_length(max_file_size, 0), window_size);
}

}  // namespace
}  // namespace iwarp::tools::copy
