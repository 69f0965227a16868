// iwarp-sample-block-server FILE: a small storage target. It exports a file as blocks that clients read and write.
//
// It teaches how a storage program embeds the stack: manual progress in the program's own io_context, beside its timers
// and signals, and no other thread. The file is mapped and registered as it is, so blocks go between it and the network
// without buffers between. Clients get no right to it: the server itself reads from and writes to their memory, once a
// request has been checked. Each client has several requests under way, one coroutine each.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <CLI/CLI.hpp>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "samples/block_protocol.hpp"
#include "samples/support/must.hpp"
#include "verbs/async.hpp"

namespace {

using namespace iwarp;
namespace asio = boost::asio;
using asio::use_awaitable;

constexpr std::uint32_t block_size = 4096;
constexpr std::uint32_t max_count = 256;     // blocks of one request
constexpr std::size_t requests_at_once = 8;  // of one client

struct device {
  verbs::protection_domain pd;
  verbs::memory_region region;
  std::uint64_t blocks = 0;
  std::uint64_t served = 0, refused = 0;  // since the last report
};

/// One client. Lives as long as a coroutine serves it.
struct session {
  session(device& d, verbs::async_connection c)
      : disk(d),
        connection(std::move(c)),
        received(must(register_all(requests), "registering memory")),
        sent(must(register_all(replies), "registering memory")) {}
  template <class Array>
  result<verbs::memory_region> register_all(Array& array) {
    return verbs::memory_region::create(disk.pd, std::as_writable_bytes(std::span(array)), verbs::access::local_write);
  }

  device& disk;
  std::array<block::request, requests_at_once> requests;
  std::array<block::reply, requests_at_once> replies;
  verbs::async_connection connection;
  verbs::memory_region received, sent;
};

block::status check(const block::request& r, std::size_t size, const device& disk) {
  if (size != sizeof r) return block::status::bad_message;
  if (r.op.value() > static_cast<std::uint32_t>(block::operation::write)) return block::status::bad_operation;
  if (r.op.value() == static_cast<std::uint32_t>(block::operation::info)) return block::status::ok;
  const std::uint64_t first = r.first.value(), count = r.count.value();
  const bool inside = first <= disk.blocks && count <= disk.blocks - first;
  return inside && count != 0 && count <= max_count ? block::status::ok : block::status::bad_range;
}

/// Serves requests in slot `i` until the client goes.
asio::awaitable<void> serve(std::shared_ptr<session> s, std::size_t i) try {
  const block::request& r = s->requests[i];
  for (;;) {
    const auto at = s->received.element(i * sizeof r, sizeof r);
    const std::size_t size = co_await s->connection.async_receive(at, use_awaitable);
    const auto result = check(r, size, s->disk);
    const std::uint32_t octets = result == block::status::ok ? r.count.value() * block_size : 0;
    const auto blocks = s->disk.region.element(octets != 0 ? r.first.value() * block_size : 0, octets);
    const verbs::remote_buffer client{{r.key.value()}, r.offset.value()};
    if (result == block::status::ok && r.op.value() == static_cast<std::uint32_t>(block::operation::read)) {
      co_await s->connection.async_write(blocks, client, use_awaitable);
    } else if (result == block::status::ok && r.op.value() == static_cast<std::uint32_t>(block::operation::write)) {
      co_await s->connection.async_read(blocks, client, use_awaitable);
    }
    ++(result == block::status::ok ? s->disk.served : s->disk.refused);
    block::reply& answer = s->replies[i];
    answer.result = static_cast<std::uint32_t>(result);
    answer.tag = size == sizeof r ? r.tag.value() : 0;
    answer.block_size = block_size;
    answer.max_count = max_count;
    answer.blocks = s->disk.blocks;
    co_await s->connection.async_send(s->sent.element(i * sizeof answer, sizeof answer), use_awaitable);
  }
} catch (const boost::system::system_error& e) {
  if (i == 0 && e.code() != asio::error::eof) fmt::print("a client's connection ended: {}\n", e.code().message());
}

asio::awaitable<void> listen(verbs::async_listener listener, device& disk) {
  for (;;) {
    boost::system::error_code why;
    auto connection = co_await listener.async_accept(disk.pd, asio::redirect_error(use_awaitable, why));
    if (why) {
      fmt::print("a client did not get through: {}\n", why.message());
      continue;
    }
    const auto s = std::make_shared<session>(disk, std::move(connection));
    for (std::size_t i = 0; i < requests_at_once; ++i) {
      asio::co_spawn(listener.get_executor(), serve(s, i), asio::detached);
    }
  }
}

/// The file as memory: what is written to it is written to the file.
std::span<std::byte> map(const std::string& name) {
  const int fd = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) throw std::system_error(errno, std::generic_category(), name);
  const std::size_t size = static_cast<std::size_t>(about.st_size) / block_size * block_size;
  if (size == 0) throw std::runtime_error(name + ": shorter than one block");
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), name);
  ::close(fd);
  return {static_cast<std::byte*>(at), size};
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Exports a file as blocks, by RDMA"};
  std::string file, address = "127.0.0.1";
  unsigned short port = 0;
  app.add_option("FILE", file, "file to export; its size counts in whole blocks")->required();
  app.add_option("--listen", address, "address to listen at")->capture_default_str();
  app.add_option("--port", port, "TCP port; 0: any free one")->capture_default_str();
  CLI11_PARSE(app, argc, argv)

  asio::io_context io;
  const auto stack = must(verbs::context::create({.progress = verbs::progress_mode::manual, .io = &io}), "context");
  const auto pd = verbs::protection_domain::create(stack);
  const std::span<std::byte> memory = map(file);
  // local_write alone: no client can reach the file by itself.
  device disk{pd, must(verbs::memory_region::create(pd, memory, verbs::access::local_write), file.c_str()),
              memory.size() / block_size};
  auto listener = must(verbs::async_listener::create(io.get_executor(), stack, {asio::ip::make_address(address), port}),
                       "listening");
  fmt::print("listening on {}, {} blocks of {} octets\n", tcp_glue::to_string(listener.local()), disk.blocks,
             block_size);
  std::fflush(stdout);
  asio::co_spawn(io, listen(std::move(listener), disk), asio::detached);

  // The program's own life goes on in the same io_context: a report now and then, and signals.
  asio::steady_timer timer(io);
  const std::function<void()> report = [&] {
    timer.expires_after(std::chrono::seconds(10));
    timer.async_wait([&](const boost::system::error_code& ec) {
      if (ec) return;
      if (disk.served + disk.refused != 0) fmt::print("{} requests served, {} refused\n", disk.served, disk.refused);
      disk.served = disk.refused = 0;
      report();
    });
  };
  report();
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  io.run();
} catch (const std::exception& e) {
  fmt::print(stderr, "iwarp-sample-block-server: {}\n", e.what());
  return 1;
}
