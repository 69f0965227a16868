#include "tools/copy/pending_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace iwarp::tools::copy {
namespace {

constexpr mode_t mode = 0666;  // less what the umask takes

std::string fresh_name() {
  std::uint64_t number = 0;
  // Uniqueness is the file system's matter (O_EXCL, linkat); this only makes a second try rare.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) != 1)
    number = static_cast<std::uint64_t>(::getpid());
  return fmt::format("{}{:016x}", temporary_prefix, number);
}

result<> check_target(const located& where) {
  struct stat about = {};
  if (::fstatat(where.folder.get(), where.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(about.st_mode)) return fail(errc::not_a_regular_file);
  } else if (errno != ENOENT) {
    return fail(last_error());
  }
  return {};
}

result<> sync_to_disk(int descriptor) {
  if (::fsync(descriptor) != 0) return fail(last_error());
  return {};
}

}  // namespace

result<pending_file> pending_file::create(located where, std::uint64_t size) {
  IWARP_CHECK(check_target(where));
  std::string temporary;
  file_descriptor file(::openat(where.folder.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary = fresh_name();
    file = file_descriptor(
        ::openat(where.folder.get(), temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  }
  if (!file) return fail(last_error());
  pending_file made(std::move(where), std::move(file), std::move(temporary));
  if (size > 0) {
    // Room now, or an error now: a mapped page that finds no room later would be a SIGBUS.
    if (const int error = ::posix_fallocate(made.descriptor(), 0, static_cast<off_t>(size)); error != 0)
      return fail({error, std::system_category()});
  }
  return made;
}

pending_file::~pending_file() {
  if (!temporary_.empty()) ::unlinkat(where_.folder.get(), temporary_.c_str(), 0);
}

result<> pending_file::commit() {
  IWARP_CHECK(sync_to_disk(file_.get()));
  IWARP_CHECK(check_target(where_));
  if (temporary_.empty()) {
    // linkat() replaces nothing, so the file takes a name of its own first; AT_EMPTY_PATH would need a capability.
    const std::string self = fmt::format("/proc/self/fd/{}", file_.get());
    const std::string name = fresh_name();
    if (::linkat(AT_FDCWD, self.c_str(), where_.folder.get(), name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return fail(last_error());
    temporary_ = name;
  }
  if (::renameat(where_.folder.get(), temporary_.c_str(), where_.folder.get(), where_.name.c_str()) != 0)
    return fail(last_error());
  temporary_.clear();
  // The file is there already; that its name survives a crash of the machine is as good as the file system's fsync().
  const file_descriptor folder(::openat(where_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
  return {};
}

}  // namespace iwarp::tools::copy
