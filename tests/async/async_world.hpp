// What the tests of the Asio-style operations share: an io_context, a context in either progress mode on it, registered
// memory, and a bounded way to run until something has happened.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verbs/async.hpp"
#include "verbs/verbs.hpp"

namespace iwarp::verbs {

namespace asio = boost::asio;
using error_code = boost::system::error_code;

/// Octets that say where they belong.
std::vector<std::byte> pattern(std::size_t size, unsigned seed);

/// Registered memory of its own, with every right.
struct buffer {
  buffer(const protection_domain& pd, std::size_t size,
         access rights = access::local_write | access::remote_read | access::remote_write);
  /// With pattern(), in place: the octets are registered where they are.
  void fill(unsigned seed);
  [[nodiscard]] sge element() const { return region.element(); }
  [[nodiscard]] sge element(std::size_t at, std::size_t length) const {
    return region.element(at, static_cast<std::uint32_t>(length));
  }
  [[nodiscard]] remote_buffer remote(std::size_t at = 0) const { return region.remote(at); }

  std::vector<std::byte> octets;
  memory_region region;
};

/// How an operation ended, and how often. Handlers may come when this is gone.
class outcome {
  struct record {
    int calls = 0;
    error_code error;
    std::size_t size = 0;
    void operator()(const error_code& e, std::size_t n = 0) {
      ++calls;
      error = e;
      size = n;
    }
  };
  std::shared_ptr<record> record_ = std::make_shared<record>();

 public:
  outcome() = default;
  outcome(const outcome&) = delete;
  outcome& operator=(const outcome&) = delete;

  void operator()(const error_code& e, std::size_t n = 0) { (*record_)(e, n); }
  /// A handler that writes here.
  [[nodiscard]] auto handler() {
    return [r = record_](const error_code& e, auto... n) { (*r)(e, n...); };
  }

  int& calls = record_->calls;
  error_code& error = record_->error;
  std::size_t& size = record_->size;
};

class async_world {
 public:
  explicit async_world(progress_mode mode);

  /// Runs handlers until `done`; a failure of the test when that takes too long.
  void run_until(const std::function<bool()>& done);
  void run_until(const outcome& one) {
    run_until([&] { return one.calls != 0; });
  }
  /// Runs what is ready now.
  void settle();
  async_connection make(const queue_pair_options& options = {});
  async_listener listen(const listen_options& options = {});

  asio::io_context io;  // first: outlives everything
  context stack;
  protection_domain pd;
};

/// Both ends of one connection in one process.
struct async_pair {
  explicit async_pair(async_world& world, const queue_pair_options& client_options = {},
                      const queue_pair_options& server_options = {}, const connect_options& how = {});
  async_listener listener;
  async_connection client;
  async_connection server;
};

class AsyncTest : public testing::TestWithParam<progress_mode> {
 protected:
  async_world world{GetParam()};
};

inline std::string mode_name(const testing::TestParamInfo<progress_mode>& info) {
  return info.param == progress_mode::automatic ? "automatic" : "manual";
}
#define IWARP_BOTH_MODES(Suite) \
  INSTANTIATE_TEST_SUITE_P(Progress, Suite, testing::Values(progress_mode::automatic, progress_mode::manual), mode_name)

}  // namespace iwarp::verbs
