#include "tools/dump/extractor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/common/failure.hpp"

namespace iwarp::dump {
namespace {

[[noreturn]] void fail_with(const std::string& name, int error) {
  throw tools::failure(fmt::format("{}: {}", name, std::strerror(error)));
}

}  // namespace

extractor::extractor(std::string folder, event_sink& next) : folder_(std::move(folder)), next_(next) {
  std::error_code problem;
  std::filesystem::create_directories(folder_, problem);
  if (problem) throw tools::failure(fmt::format("{}: {}", folder_, problem.message()));
}

extractor::~extractor() {
  for (auto& [k, f] : files_) {
    if (f.fd >= 0) ::close(f.fd);
  }
}

void extractor::open(const key& k, file& f, bool fresh) {
  if (by_use_.size() == most_open) close(files_.at(by_use_.front()));
  f.fd = ::open(f.name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (fresh ? O_TRUNC : 0), 0666);
  if (f.fd < 0) fail_with(f.name, errno);
  f.used = by_use_.insert(by_use_.end(), k);
}

void extractor::close(file& f) {
  by_use_.erase(f.used);
  const int fd = f.fd;
  f.fd = -1;
  if (::close(fd) != 0) fail_with(f.name, errno);
}

void extractor::on(const fpdu_event& e) {
  next_.on(e);
  if (!e.headers) return;
  const key k{e.at.stream->number, e.message};
  const auto [found, fresh] = files_.try_emplace(k);
  file& f = found->second;
  if (fresh) f.name = fmt::format("{}/{}-{}-{}.bin", folder_, k.first, k.second, short_name(e.op));
  if (f.fd < 0) {
    open(k, f, fresh);
  } else {
    by_use_.splice(by_use_.end(), by_use_, f.used);
  }
  std::uint64_t at = f.size;
  for (const_bytes left = e.payload; !left.empty();) {
    const ssize_t n = ::pwrite(f.fd, left.data(), left.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with(f.name, errno);
    at += static_cast<std::uint64_t>(n);
    left = left.subspan(static_cast<std::size_t>(n));
  }
  f.size += e.payload_size;
  if (e.payload.size() != e.payload_size && ::ftruncate(f.fd, static_cast<off_t>(f.size)) != 0) {
    fail_with(f.name, errno);
  }
}

void extractor::on(const message_event& e) {
  next_.on(e);
  const auto found = files_.find({e.at.stream->number, e.number});
  if (found == files_.end()) return;
  if (found->second.fd >= 0) close(found->second);
  files_.erase(found);
}

}  // namespace iwarp::dump
