#include "tests/rdmap/stream_side.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace iwarp::stream_test {

stream_side::stream_side(const rdmap::stream_options& options, const side_sizes& sizes)
    : ring(sizes.depth, sizes.max_sge, sizes.max_inline), engine(options, user, ring, rx_memory, batches) {
  events.reserve(16);
}

std::vector<rdmap::stream_event> stream_side::poll() {
  std::vector<rdmap::stream_event> news;
  while (const auto event = engine.poll_event()) {
    EXPECT_FALSE(told(*event)) << "an event came twice: " << static_cast<int>(*event);
    if (!events.empty()) {
      EXPECT_LT(events.back(), *event) << "events come in the order of their enumeration";
    }
    events.push_back(*event);
    news.push_back(*event);
  }
  return news;
}

bool stream_side::told(rdmap::stream_event event) const { return std::ranges::count(events, event) != 0; }

template <class Elements>
std::uint64_t stream_side::put(rdmap::work_request request, const Elements& elements, bool submit_now) {
  EXPECT_LT(posted_ - user.sends.size(), ring.depth()) << "the test posts more than the ring holds";
  request.id = posted_;
  if (!request.inline_data) {
    request.length = 0;
    request.sge_count = static_cast<std::uint16_t>(elements.size());
    std::copy(elements.begin(), elements.end(), ring.elements(posted_).begin());
    for (const auto& element : elements) request.length += element.length;
  }
  ring[posted_] = request;
  ++posted_;
  if (submit_now) submit();
  return request.id;
}

std::uint64_t stream_side::post(rdmap::work_request request, std::initializer_list<rdmap::sge> elements,
                                bool submit_now) {
  return put(request, elements, submit_now);
}
std::uint64_t stream_side::post(rdmap::work_request request, const std::vector<rdmap::sge>& elements, bool submit_now) {
  return put(request, elements, submit_now);
}

std::uint64_t stream_side::post_inline(rdmap::work_request request, const_bytes data) {
  std::ranges::copy(data, ring.inline_data(posted_).begin());
  request.inline_data = true;
  request.length = static_cast<std::uint32_t>(data.size());
  return put(request, std::vector<rdmap::sge>{}, true);
}

std::uint64_t stream_side::send(rdmap::sge element, rdmap::operation op, stag invalidate) {
  rdmap::work_request request;
  request.op = op;
  request.invalidate = invalidate;
  return post(request, {element});
}

std::uint64_t stream_side::write(rdmap::sge element, remote_buffer to) {
  rdmap::work_request request;
  request.op = rdmap::operation::write;
  request.remote = to.key;
  request.remote_offset = to.offset;
  return post(request, {element});
}

std::uint64_t stream_side::read(rdmap::sge element, remote_buffer from, bool fence) {
  rdmap::work_request request;
  request.op = rdmap::operation::read;
  request.remote = from.key;
  request.remote_offset = from.offset;
  request.fence = fence;
  return post(request, {element});
}

void stream_side::submit() { engine.submit(posted_, now); }

std::size_t stream_side::count(rdmap::wr_status status) const {
  return static_cast<std::size_t>(std::ranges::count(user.sends, status));
}

}  // namespace iwarp::stream_test
