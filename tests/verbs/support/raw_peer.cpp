#include "tests/verbs/support/raw_peer.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "ddp/header.hpp"
#include "mpa/crc32c.hpp"
#include "tests/verbs/support/guarded_memory.hpp"

namespace iwarp::verbs_test {

// Sockets -------------------------------------------------------------------------------------------------------------

raw_socket raw_socket::connect(const verbs::endpoint& where) {
  const int fd = ::socket(where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  raw_socket made(fd);
  EXPECT_EQ(::connect(fd, where.data(), static_cast<socklen_t>(where.size())), 0) << errno;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

bool raw_socket::send(const_bytes data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
    if (n < 0) return false;
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

octets raw_socket::receive(std::size_t size) {
  octets got(size);
  std::size_t have = 0;
  while (have < size) {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 20'000) != 1) break;
    const ssize_t n = ::recv(fd_, got.data() + have, size - have, 0);
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  got.resize(have);
  return got;
}

raw_socket::ending raw_socket::wait_end(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::array<std::byte, 4096> away;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    if (left < 0 || ::poll(&wait, 1, static_cast<int>(left)) != 1) return ending::none;
    const ssize_t n = ::recv(fd_, away.data(), away.size(), 0);
    if (n == 0) return ending::fin;
    if (n < 0) return ending::reset;
  }
}

void raw_socket::fin() { ::shutdown(fd_, SHUT_WR); }

void raw_socket::die() {
  sock_filter nothing{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog program{.len = 1, .filter = &nothing};
  ASSERT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

void raw_socket::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void raw_socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

raw_listener::raw_listener(bool v6)
    : fd_(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      where_(v6 ? verbs::endpoint{boost::asio::ip::address_v6::loopback(), 0}
                : verbs::endpoint{boost::asio::ip::address_v4::loopback(), 0}) {
  socket_ = raw_socket(fd_);
  EXPECT_EQ(::bind(fd_, where_.data(), static_cast<socklen_t>(where_.size())), 0);
  EXPECT_EQ(::listen(fd_, 16), 0);
  auto size = static_cast<socklen_t>(where_.capacity());
  EXPECT_EQ(::getsockname(fd_, where_.data(), &size), 0);
  where_.resize(size);
}

raw_socket raw_listener::accept() {
  pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, 20'000) != 1) {
    ADD_FAILURE() << "nobody connected";
    return {};
  }
  return raw_socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
}

// Octets --------------------------------------------------------------------------------------------------------------

octets pattern(std::size_t size, std::uint64_t seed) {
  octets made(size);
  fill(made, seed);
  return made;
}

octets tagged(rdmap::opcode op, stag key, std::uint64_t offset, const_bytes payload, bool last) {
  octets made(ddp::tagged_header_size);
  ddp::tagged_header{.last = last, .ulp_control = rdmap::control_octet(op), .stag = key, .offset = offset}.emit(
      std::span(made).first<ddp::tagged_header_size>());
  made.insert(made.end(), payload.begin(), payload.end());
  return made;
}

octets untagged(rdmap::opcode op, std::uint32_t sequence, const_bytes payload, std::uint32_t offset, bool last,
                stag invalidate) {
  octets made(ddp::untagged_header_size);
  ddp::untagged_header{.last = last,
                       .ulp_control = rdmap::control_octet(op),
                       .invalidate = invalidate,
                       .queue = rdmap::info(op).queue,
                       .sequence = {sequence},
                       .offset = offset}
      .emit(std::span(made).first<ddp::untagged_header_size>());
  made.insert(made.end(), payload.begin(), payload.end());
  return made;
}

octets read_request(std::uint32_t sequence, const rdmap::read_request& words) {
  std::array<std::byte, rdmap::read_request_size> payload;
  words.emit(payload);
  return untagged(rdmap::opcode::read_request, sequence, payload);
}

octets fpdu(const_bytes ulpdu, bool crc) {
  octets made(2);
  store_be(std::span(made).first<2>(), static_cast<std::uint16_t>(ulpdu.size()));
  made.insert(made.end(), ulpdu.begin(), ulpdu.end());
  made.resize((made.size() + 3) / 4 * 4);
  const std::uint32_t sum = crc ? mpa::crc32c(made) : 0;
  made.resize(made.size() + 4);
  store_le(std::span(made).last<4>(), sum);
  return made;
}

// Peers ---------------------------------------------------------------------------------------------------------------

void raw_peer::send_frame(const mpa::startup_frame& frame) {
  std::array<std::byte, mpa::startup_fixed_size + mpa::max_private_data> out;
  socket.send(std::span(out).first(frame.emit(out)));
}

void raw_peer::send_request(const mpa::startup_options& own, const_bytes data) {
  send_frame(mpa::make_request(own, data));
}

std::optional<mpa::startup_frame> raw_peer::start_up_frame(mpa::frame_kind kind) {
  const octets fixed = socket.receive(mpa::startup_fixed_size);
  if (fixed.size() != mpa::startup_fixed_size) return std::nullopt;
  mpa::startup_reader reader(kind);
  EXPECT_TRUE(reader.consume(fixed));
  if (!reader.complete()) {
    const std::size_t more = load_be<std::uint16_t>(std::span(fixed).last<2>());
    const octets rest = socket.receive(more);
    EXPECT_TRUE(reader.consume(rest));
  }
  if (!reader.complete()) return std::nullopt;
  return reader.frame();
}

std::optional<mpa::startup_frame> raw_peer::accept(const mpa::startup_options& own, const_bytes data) {
  auto request = start_up_frame(mpa::frame_kind::request);
  if (!request) return request;
  const auto answer = mpa::accept_request(own, *request, data);
  crc = answer.agreed.crc;
  send_frame(answer.reply);
  return request;
}

std::optional<octets> raw_peer::ulpdu() {
  const octets length = socket.receive(2);
  if (length.size() != 2) return std::nullopt;
  const std::size_t size = load_be<std::uint16_t>(std::span(length).first<2>());
  const std::size_t padded = (2 + size + 3) / 4 * 4 - 2;
  octets rest = socket.receive(padded + 4);
  if (rest.size() != padded + 4) {
    ADD_FAILURE() << "the stream ended inside an FPDU";
    return std::nullopt;
  }
  octets whole = length;
  whole.insert(whole.end(), rest.begin(), rest.end() - 4);
  if (crc) {
    EXPECT_EQ(mpa::crc32c(whole), load_le<std::uint32_t>(std::span(rest).last<4>()));
  }
  rest.resize(size);
  return rest;
}

std::optional<rdmap::terminate_message> raw_peer::terminate() {
  while (const auto unit = ulpdu()) {
    if (unit->size() < ddp::untagged_header_size + 4 || ddp::is_tagged(unit->front())) continue;
    if (rdmap::opcode_of(std::to_integer<std::uint8_t>((*unit)[1])) != rdmap::opcode::terminate) continue;
    const auto read = rdmap::terminate_message::parse(std::span(*unit).subspan(ddp::untagged_header_size));
    EXPECT_TRUE(read);
    if (!read) return std::nullopt;
    return *read;
  }
  return std::nullopt;
}

}  // namespace iwarp::verbs_test
