// iwarp-sample-block-client ADDRESS PORT: writes random blocks to a block server, reads them back and compares.
//
// It teaches the other half of the storage exchange: the client lends its memory to the server for as long as it wants
// blocks moved, and every request is one co_await..
#include <fmt/format.h>

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <CLI/CLI.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <exception>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "samples/block_protocol.hpp"
#include "samples/support/must.hpp"
#include "verbs/async.hpp"

namespace {

using namespace iwarp;
namespace asio = boost::asio;
using asio::use_awaitable;
using verbs::access;

/// One request at a time over a connection of its own: request, reply, and the blocks' memory.
class block_device {
 public:
  block_device(const asio::any_io_executor& io, const verbs::context& stack, std::uint32_t max_octets)
      : pd_(verbs::protection_domain::create(stack)),
        connection_(must(verbs::async_connection::create(io, stack, pd_), "making a connection")),
        blocks(max_octets),
        lent_(must(
            verbs::memory_region::create(pd_, blocks, access::local_write | access::remote_write | access::remote_read),
            "registering memory")),
        sent_(must(
            verbs::memory_region::create(pd_, std::as_writable_bytes(std::span(&request_, 1)), access::local_write),
            "registering memory")),
        received_(
            must(verbs::memory_region::create(pd_, std::as_writable_bytes(std::span(&reply_, 1)), access::local_write),
                 "registering memory")) {}

  asio::awaitable<void> connect(verbs::endpoint server) { co_await connection_.async_connect(server, use_awaitable); }
  asio::awaitable<void> disconnect() { co_await connection_.async_disconnect(use_awaitable); }

  /// Moves `count` blocks from number `first` on between the server and the front of `blocks`.
  asio::awaitable<block::status> run(block::operation op, std::uint64_t first, std::uint32_t count) {
    request_.op = static_cast<std::uint32_t>(op);
    request_.first = first;
    request_.count = count;
    request_.key = lent_.key().value;
    request_.offset = lent_.remote().offset;
    request_.tag = ++tag_;
    co_await connection_.async_send(sent_.element(), use_awaitable);
    const std::size_t size = co_await connection_.async_receive(received_.element(), use_awaitable);
    if (size != sizeof reply_ || reply_.tag.value() != tag_) throw std::runtime_error("the reply is none");
    co_return static_cast<block::status>(reply_.result.value());
  }
  [[nodiscard]] const block::reply& last() const noexcept { return reply_; }

 private:
  verbs::protection_domain pd_;
  block::request request_{};
  block::reply reply_{};
  std::uint32_t tag_ = 0;
  verbs::async_connection connection_;

 public:
  std::vector<std::byte> blocks;

 private:
  verbs::memory_region lent_, sent_, received_;
};

asio::awaitable<void> use(block_device& disk, verbs::endpoint server, unsigned rounds, unsigned seed) {
  co_await disk.connect(server);
  co_await disk.run(block::operation::info, 0, 0);
  const std::uint32_t size = disk.last().block_size.value();
  const std::uint64_t total = disk.last().blocks.value();
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < rounds; ++i) {
    const auto most = std::min({std::uint64_t{disk.last().max_count.value()}, total, disk.blocks.size() / size});
    const auto count = static_cast<std::uint32_t>(random() % most + 1);
    const std::uint64_t first = random() % (total - count + 1);
    std::vector<std::byte> wanted(std::size_t{count} * size);
    for (std::byte& octet : wanted) octet = static_cast<std::byte>(random());
    std::copy(wanted.begin(), wanted.end(), disk.blocks.begin());
    if (co_await disk.run(block::operation::write, first, count) != block::status::ok)
      throw std::runtime_error("write refused");
    std::fill(disk.blocks.begin(), disk.blocks.end(), std::byte{});
    if (co_await disk.run(block::operation::read, first, count) != block::status::ok)
      throw std::runtime_error("read refused");
    if (!std::equal(wanted.begin(), wanted.end(), disk.blocks.begin()))
      throw std::runtime_error("blocks came back changed");
  }
  // What lies beyond the device is refused, and the connection goes on.
  if (co_await disk.run(block::operation::read, total, 1) != block::status::bad_range)
    throw std::runtime_error("no range check");
  if (co_await disk.run(static_cast<block::operation>(7), 0, 1) != block::status::bad_operation)
    throw std::runtime_error("no operation check");
  co_await disk.disconnect();
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Writes and reads blocks of a block server, and compares"};
  std::string address;
  unsigned short port = 0;
  unsigned rounds = 100, seed = 1;
  app.add_option("ADDRESS", address, "of the server")->required();
  app.add_option("PORT", port, "of the server")->required();
  app.add_option("--rounds", rounds, "writes and reads")->capture_default_str();
  app.add_option("--seed", seed, "of the random numbers")->capture_default_str();
  CLI11_PARSE(app, argc, argv)

  asio::io_context io;
  const auto stack = must(verbs::context::create({.progress = verbs::progress_mode::manual, .io = &io}), "context");
  block_device disk(io.get_executor(), stack, 256 * 4096);
  std::exception_ptr failed;
  asio::co_spawn(io, use(disk, {asio::ip::make_address(address), port}, rounds, seed),
                 [&](const std::exception_ptr& e) { failed = e; });
  io.run();
  if (failed) std::rethrow_exception(failed);
  fmt::print("{} writes and reads, all octets right\n", rounds);
} catch (const std::exception& e) {
  fmt::print(stderr, "iwarp-sample-block-client: {}\n", e.what());
  return 1;
}
