// iwarp-bench-raw-tcp: what plain TCP does on this machine, with the roles and options of iwarp-perf, so that one can
// be given as a ratio of the other. One send(2) per message; a ping-pong polls without sleeping, as iwarp-perf does.
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/common/peer.hpp"
#include "tools/common/stop.hpp"
#include "tools/perf/report.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::tools;
using clock = std::chrono::steady_clock;

constexpr std::uint16_t default_port = 7177;
constexpr std::size_t read_size = 256 * 1024;

class tcp_socket {
 public:
  explicit tcp_socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor_ < 0) throw failure("socket: " + describe(error()));
  }
  tcp_socket(tcp_socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  tcp_socket& operator=(tcp_socket&&) = delete;
  ~tcp_socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  static std::error_code error() noexcept { return {errno, std::system_category()}; }

  void no_delay() const {
    const int one = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }

  void send_all(const_bytes octets) const {
    while (!octets.empty()) {
      const ssize_t sent = ::send(descriptor_, octets.data(), octets.size(), MSG_NOSIGNAL);
      if (sent < 0 && stop_requested()) throw interrupted();
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) throw failure("send: " + describe(error()));
      octets = octets.subspan(static_cast<std::size_t>(sent));
    }
  }

  /// 0: the peer has closed. `poll`: without sleeping.
  std::size_t receive(mutable_bytes into, bool poll) const {
    for (;;) {
      const ssize_t got = ::recv(descriptor_, into.data(), into.size(), poll ? MSG_DONTWAIT : 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (stop_requested()) throw interrupted();
      if (errno != EINTR && errno != EAGAIN) throw failure("recv: " + describe(error()));
    }
  }

  bool receive_all(mutable_bytes into, bool poll) const {
    while (!into.empty()) {
      const std::size_t got = receive(into, poll);
      if (got == 0) return false;
      into = into.subspan(got);
    }
    return true;
  }

 private:
  int descriptor_;
};

enum class mode : std::uint8_t { to_server = 1, to_client = 2, ping_pong = 3 };

/// What the client says first: mode and message size, big-endian.
struct hello {
  mode what = mode::to_server;
  std::uint32_t size = 0;
  static constexpr std::size_t octets = 8;
};

// The receiver of a stream tells how much came, so that the clock stops when everything has arrived.
void send_count(const tcp_socket& to, std::uint64_t count) {
  std::array<std::byte, 8> octets;
  store_be<std::uint64_t>(octets, count);
  to.send_all(octets);
}

void serve_one(const tcp_socket& client) {
  std::array<std::byte, hello::octets> first;
  if (!client.receive_all(first, false)) return;
  const auto what = static_cast<mode>(std::to_integer<std::uint8_t>(first[0]));
  const std::uint32_t size = load_be<std::uint32_t>(std::span(first).subspan<4, 4>());
  if (size == 0 || size > (64u << 20)) throw failure("a client asked for messages of no possible size");
  std::vector<std::byte> buffer(std::max<std::size_t>(size, read_size));
  switch (what) {
    case mode::to_server: {
      std::uint64_t total = 0;
      while (const std::size_t got = client.receive(buffer, false)) total += got;
      send_count(client, total);
      break;
    }
    case mode::to_client:
      // Until the client has closed.
      for (;;) client.send_all(std::span(buffer).first(size));
    case mode::ping_pong:
      while (client.receive_all(std::span(buffer).first(size), true)) client.send_all(std::span(buffer).first(size));
      break;
    default:
      throw failure("a client asked for something unknown");
  }
}

int serve(const tcp_glue::host_port& where) {
  const std::string what = "cannot listen on " + to_text(where);
  const auto address = require(tcp_glue::resolve(where, true), what).front();
  const tcp_socket listener(::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(listener.get(), address.data(), static_cast<socklen_t>(address.size())) != 0 ||
      ::listen(listener.get(), 16) != 0)
    throw failure(what + ": " + describe(tcp_socket::error()));
  tcp_glue::endpoint bound = address;
  socklen_t length = static_cast<socklen_t>(bound.capacity());
  ::getsockname(listener.get(), bound.data(), &length);
  fmt::print("listening on {}\n", tcp_glue::to_string(bound));
  std::fflush(stdout);
  for (;;) {
    const int descriptor = listener.get();
    try {
      wait_readable({&descriptor, 1}, no_limit);
    } catch (const interrupted&) {
      // Threads of clients that are still there end with the process.
      std::_Exit(0);
    }
    auto client = std::make_shared<tcp_socket>(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    client->no_delay();
    std::thread([client] {
      try {
        serve_one(*client);
      } catch (const failure&) {
        // The client has closed.
      }
    }).detach();
  }
}

struct load {
  tcp_glue::host_port where;
  std::string op = "write";
  std::uint64_t size = 65536;
  std::uint64_t depth = 1;
  std::uint64_t seconds = 5;
  bool latency = false;
  bool json = false;
};

tcp_socket dial(const peer& to) {
  std::string why = "no address";
  for (const auto& address : to.addresses) {
    tcp_socket made(::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(made.get(), address.data(), static_cast<socklen_t>(address.size())) == 0) {
      made.no_delay();
      return made;
    }
    why = describe(tcp_socket::error());
  }
  throw failure("cannot connect to " + to.text + ": " + why);
}

class client {
 public:
  explicit client(const load& wanted)
      : wanted_(wanted),
        socket_(dial(resolve_peer(wanted.where))),
        buffer_(std::max<std::size_t>(wanted.size, read_size)) {}

  void run() {
    const auto length = std::chrono::seconds(wanted_.seconds);
    const mode what = wanted_.latency ? mode::ping_pong : wanted_.op == "read" ? mode::to_client : mode::to_server;
    std::array<std::byte, hello::octets> first = {static_cast<std::byte>(what)};
    store_be<std::uint32_t>(std::span(first).subspan<4, 4>(), static_cast<std::uint32_t>(wanted_.size));
    socket_.send_all(first);
    latency_histogram samples;
    if (what == mode::ping_pong) {
      ping_pong(length / 10, nullptr);
      const auto start = clock::now();
      show(ping_pong(length, &samples), start, &samples);
    } else if (what == mode::to_client) {
      receive_for(length / 10);
      const auto start = clock::now();
      show(receive_for(length) / wanted_.size, start, nullptr);
    } else {
      const auto start = clock::now();
      show(send_for(length), start, nullptr);
    }
  }

 private:
  void show(std::uint64_t messages, clock::time_point start, const latency_histogram* samples) const {
    perf::print({.op = wanted_.op,
                 .size = wanted_.size,
                 .depth = wanted_.latency ? 1 : wanted_.depth,
                 .seconds = std::chrono::duration<double>(clock::now() - start).count(),
                 .messages = messages,
                 .latency = samples,
                 .half_round_trip = true},
                wanted_.json);
  }

  std::uint64_t send_for(clock::duration length) {
    const auto message = std::span(buffer_).first(wanted_.size);
    const auto end = clock::now() + length;
    std::uint64_t messages = 0;
    // The clock is read seldom enough not to matter.
    const std::uint64_t between = std::max<std::uint64_t>(1, 65536 / wanted_.size);
    while (clock::now() < end)
      for (std::uint64_t i = 0; i < between; ++i, ++messages) socket_.send_all(message);
    ::shutdown(socket_.get(), SHUT_WR);
    std::array<std::byte, 8> count;
    if (!socket_.receive_all(count, false) || load_be<std::uint64_t>(count) != messages * wanted_.size)
      throw failure("the server did not receive all that was sent");
    return messages;
  }

  std::uint64_t receive_for(clock::duration length) {
    const auto end = clock::now() + length;
    std::uint64_t octets = 0;
    while (clock::now() < end) {
      const std::size_t got = socket_.receive(buffer_, false);
      if (got == 0) throw failure("the server closed the connection");
      octets += got;
    }
    return octets;
  }

  std::uint64_t ping_pong(clock::duration length, latency_histogram* samples) {
    const auto message = std::span(buffer_).first(wanted_.size);
    const auto end = clock::now() + length;
    std::uint64_t rounds = 0;
    for (auto start = clock::now(); start < end; ++rounds) {
      socket_.send_all(message);
      if (!socket_.receive_all(message, true)) throw failure("the server closed the connection");
      const auto now = clock::now();
      if (samples != nullptr) samples->add((now - start) / 2);
      start = now;
    }
    return rounds;
  }

  const load& wanted_;
  tcp_socket socket_;
  std::vector<std::byte> buffer_;
};

int program(int argc, char** argv) {
  CLI::App app("Measures plain TCP as iwarp-perf measures iWARP: the baseline of the comparison.",
               "iwarp-bench-raw-tcp");
  tcp_glue::host_port listen{.host = {}, .port = default_port, .port_given = false};
  auto* server = app.add_subcommand("serve", "The other end, for any number of clients");
  add_address(*server, "--listen", listen, default_port, "Where to listen. Default: every address, port 7177");
  load wanted;
  auto* connect = app.add_subcommand("connect", "Load a server and print what was reached");
  add_address(*connect, "ADDR", wanted.where, default_port, "The server. Default port: 7177")->required();
  connect->add_option("--op", wanted.op, "write, send: a stream to the server; read: a stream from it. Default: write")
      ->check(CLI::IsMember({"write", "read", "send"}));
  add_number(*connect, "--size", wanted.size, 1, std::uint64_t{64} << 20, "Octets of a message. Default: 64K", true);
  add_number(*connect, "--depth", wanted.depth, 1, 1 << 20, "Has no meaning here; for the options of iwarp-perf");
  add_number(*connect, "--seconds", wanted.seconds, 1, 86400, "Measure so long. Default: 5");
  connect->add_flag("--latency", wanted.latency, "Ping-pong of messages, polled; half of the round trip counts");
  connect->add_flag("--json", wanted.json, "Print one JSON object with the keys of iwarp-perf");
  prepare(app,
          "  iwarp-bench-raw-tcp serve --listen 127.0.0.1\n"
          "  iwarp-bench-raw-tcp connect 127.0.0.1 --size 1M\n");
  if (const auto code = parse(app, argc, argv)) return *code;
  stop_on_signals();
  if (*server) return serve(listen);
  client(wanted).run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return iwarp::tools::run_program("iwarp-bench-raw-tcp", [&] { return program(argc, argv); });
}
