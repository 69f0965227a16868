#include "tools/copy/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/common/failure.hpp"

namespace iwarp::tools::copy {

using clock = std::chrono::steady_clock;

progress_bar::progress_bar(std::string name, std::uint64_t total)
    : name_(printable(name)),
      total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1 && total > 0),
      start_(clock::now()),
      drawn_(start_) {}

progress_bar::~progress_bar() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void progress_bar::show(std::uint64_t done) {
  const auto now = clock::now();
  if (!terminal_ || now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  constexpr std::size_t width = 30;
  const double part = static_cast<double>(done) / static_cast<double>(total_);
  const auto filled = std::min(width, static_cast<std::size_t>(part * width));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / 1e6 / seconds;
  const double left = static_cast<double>(total_ - done) / 1e6 / std::max(rate, 1e-6);
  fmt::print(stderr, "\r\033[K{:.30} [{:#<{}}{: <{}}] {:3.0f}% {:.0f} MB/s, {:.0f} s left", name_, "", filled, "",
             width - filled, part * 100, rate, left);
  std::fflush(stderr);
}

}  // namespace iwarp::tools::copy
