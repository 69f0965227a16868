// Internal to tests.
// A stream with all that it needs around it: consumer, ring, memory; and short ways to post.
// Threading: not thread-safe; one caller at a time.  Time: passed in.  I/O: none.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "rdmap/stream.hpp"
#include "tests/rdmap/stream_consumer.hpp"

namespace iwarp::stream_test {

struct side_sizes {
  std::uint32_t depth = 256;
  std::uint32_t max_sge = 16;
  std::uint32_t max_inline = 512;
};

struct remote_buffer {
  stag key;
  std::uint64_t offset = 0;
};

class stream_side {
 public:
  explicit stream_side(const rdmap::stream_options& options = {}, const side_sizes& sizes = {});

  test_consumer user;
  rdmap::send_ring ring;
  mpa::rx_memory rx_memory;
  mpa::tx_batch_pool batches;
  rdmap::stream engine;
  timestamp now{0};
  std::vector<rdmap::stream_event> events;

  /// Appends to `events` what the engine has to tell; a test fails that tells the same twice. Returns the news.
  std::vector<rdmap::stream_event> poll();
  [[nodiscard]] bool told(rdmap::stream_event event) const;

  // Posting. Each returns the running index and submits.
  std::uint64_t post(rdmap::work_request request, std::initializer_list<rdmap::sge> elements, bool submit = true);
  std::uint64_t post(rdmap::work_request request, const std::vector<rdmap::sge>& elements, bool submit = true);
  std::uint64_t post_inline(rdmap::work_request request, const_bytes data);
  std::uint64_t send(rdmap::sge element, rdmap::operation op = rdmap::operation::send, stag invalidate = {});
  std::uint64_t write(rdmap::sge element, remote_buffer to);
  std::uint64_t read(rdmap::sge element, remote_buffer from, bool fence = false);
  void submit();
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  /// Requests that are neither flushed nor done.
  [[nodiscard]] std::size_t outstanding() const noexcept { return posted_ - user.sends.size(); }

  /// How many of the completed requests have this status.
  [[nodiscard]] std::size_t count(rdmap::wr_status status) const;

 private:
  template <class Elements>
  std::uint64_t put(rdmap::work_request request, const Elements& elements, bool submit);
  std::uint64_t posted_ = 0;
};

}  // namespace iwarp::stream_test
