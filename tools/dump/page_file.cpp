#include "tools/dump/page_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/common/failure.hpp"

namespace iwarp::dump {

page_file::page_file(std::string path) : path_(std::move(path)), temporary_(fmt::format("{}.{}", path_, ::getpid())) {
  // Renaming would put a plain file in the place of a device.
  struct stat there {};
  if (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    fail(S_ISDIR(there.st_mode) ? EISDIR : EINVAL);
  }
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno);
}

page_file::~page_file() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void page_file::fail(int error) const {
  throw tools::failure(fmt::format("cannot write {}: {}", path_,
                                   error == EINVAL ? "it is there and no plain file" : std::strerror(error)));
}

void page_file::flush() {
  const char* data = text_.data();
  std::size_t left = text_.size();
  while (left != 0) {
    const ssize_t n = ::write(fd_, data, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    data += n;
    left -= static_cast<std::size_t>(n);
  }
  text_.clear();
}

void page_file::commit() {
  flush();
  const int fd = std::exchange(fd_, -1);
  const int closed = ::close(fd) == 0 ? 0 : errno;
  if (closed == 0 && std::rename(temporary_.c_str(), path_.c_str()) == 0) return;
  const int error = closed != 0 ? closed : errno;
  ::unlink(temporary_.c_str());
  fail(error);
}

}  // namespace iwarp::dump
