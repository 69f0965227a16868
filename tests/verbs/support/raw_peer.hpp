// Internal to tests.
// A peer made of a plain blocking TCP socket: sends exactly the octets a test wants, well formed or not, cut or not,
// and takes apart what comes back. Both roles of the MPA start-up. Threading: not thread-safe; one caller at a time.
// Time: every read is bounded.  I/O: blocking sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/types.hpp"
#include "mpa/negotiation.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"
#include "rdmap/terminate.hpp"
#include "verbs/event_channel.hpp"

namespace iwarp::verbs_test {

using octets = std::vector<std::byte>;

class raw_socket {
 public:
  raw_socket() = default;
  explicit raw_socket(int fd) noexcept : fd_(fd) {}
  ~raw_socket() { close(); }
  raw_socket(raw_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  raw_socket& operator=(raw_socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  static raw_socket connect(const verbs::endpoint& where);
  /// False once the other side has gone.
  bool send(const_bytes data);
  /// Up to `size` octets; fewer when the stream ended or nothing came in time.
  octets receive(std::size_t size);
  enum class ending { fin, reset, none };
  /// Reads away what is there and says how the stream ended; `none`: it goes on.
  ending wait_end(std::chrono::milliseconds limit = std::chrono::seconds(20));
  void fin();
  /// As if its machine had lost power: whatever comes for it is dropped and not acknowledged.
  void die();
  void reset();
  void close();

 private:
  int fd_ = -1;
};

class raw_listener {
 public:
  explicit raw_listener(bool v6 = false);
  [[nodiscard]] const verbs::endpoint& local() const noexcept { return where_; }
  raw_socket accept();

 private:
  raw_socket socket_;
  int fd_ = -1;
  verbs::endpoint where_;
};

// Segments (RFC 5041 s4): headers of the layers under test, which have tests of their own against the RFC's octets.
octets tagged(rdmap::opcode op, stag key, std::uint64_t offset, const_bytes payload, bool last = true);
octets untagged(rdmap::opcode op, std::uint32_t sequence, const_bytes payload, std::uint32_t offset = 0,
                bool last = true, stag invalidate = {});
octets read_request(std::uint32_t sequence, const rdmap::read_request& words);
/// Length, ULPDU, PAD, CRC (RFC 5044 s4.1).
octets fpdu(const_bytes ulpdu, bool crc = true);
octets pattern(std::size_t size, std::uint64_t seed);

class raw_peer {
 public:
  explicit raw_peer(raw_socket s) : socket(std::move(s)) {}
  /// TCP alone.
  static raw_peer connect(const verbs::endpoint& where) { return raw_peer(raw_socket::connect(where)); }

  void send_request(const mpa::startup_options& own = {}, const_bytes data = {});
  /// Reads one start-up frame; nothing when none came.
  std::optional<mpa::startup_frame> start_up_frame(mpa::frame_kind kind);
  /// Reads the Request and accepts it.
  std::optional<mpa::startup_frame> accept(const mpa::startup_options& own = {}, const_bytes data = {});
  void send_frame(const mpa::startup_frame& frame);

  bool send_ulpdu(const_bytes ulpdu) { return socket.send(fpdu(ulpdu, crc)); }
  /// The next ULPDU, its CRC checked; nothing at the end of the stream.
  std::optional<octets> ulpdu();
  /// Reads until a Terminate or the end.
  std::optional<rdmap::terminate_message> terminate();

  raw_socket socket;
  bool crc = true;
};

}  // namespace iwarp::verbs_test
