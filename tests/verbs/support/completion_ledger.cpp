#include "tests/verbs/support/completion_ledger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.hpp"

namespace iwarp::verbs_test {

void completion_ledger::note(const verbs::completion& c) {
  SCOPED_TRACE(testing::Message() << "completion of request " << c.id << ": " << verbs::to_string(c.status));
  if (c.status != verbs::status::success && c.status != verbs::status::flushed) ++failures_;
  EXPECT_LE(failures_, 1u) << "VRB-09: one request of a connection may fail, the others are flushed";
  auto& queue = c.kind == verbs::completion_kind::receive ? receives_ : sends_;
  while (!queue.empty() && queue.front().id != c.id && !queue.front().signaled) queue.pop_front();
  if (queue.empty() || queue.front().id != c.id) {
    ADD_FAILURE() << (queue.empty() ? "nothing is outstanding" : "another request was posted before it");
    return;
  }
  if (c.status == verbs::status::success) {
    EXPECT_EQ(c.kind, queue.front().kind);
    EXPECT_TRUE(queue.front().signaled) << "an unsignaled request succeeds in silence";
  }
  queue.pop_front();
}

std::size_t completion_ledger::outstanding() const noexcept {
  const auto last = std::find_if(sends_.rbegin(), sends_.rend(), [](const entry& e) { return e.signaled; });
  return receives_.size() + static_cast<std::size_t>(sends_.rend() - last);
}

std::deque<verbs::completion> poll_poisoned(verbs::completion_queue& queue) {
  constexpr std::size_t most = 8;
  std::array<verbs::completion, most> out;
  std::memset(static_cast<void*>(out.data()), 0xA5, sizeof out);
  const std::size_t n = queue.poll(out);
  EXPECT_LE(n, most);
  const const_bytes behind = std::as_bytes(std::span(out).subspan(std::min(n, most)));
  EXPECT_TRUE(std::all_of(behind.begin(), behind.end(), [](std::byte b) { return b == std::byte{0xA5}; }))
      << "poll() wrote behind what it returned";
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(std::min(n, most))};
}

}  // namespace iwarp::verbs_test
