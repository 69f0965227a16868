#include "tools/copy/file_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace iwarp::tools::copy {
namespace {

bool plain(std::string_view component) noexcept {
  return !component.empty() && component != "." && component != ".." &&
         component.find('\0') == std::string_view::npos && !component.starts_with(temporary_prefix);
}

}  // namespace

file_descriptor::~file_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

result<located> locate(int root, std::string_view name) {
  file_descriptor folder(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(last_error());
  for (;;) {
    const auto slash = name.find('/');
    const std::string component(name.substr(0, slash));
    if (!plain(component)) return fail(errc::bad_file_name);
    if (slash == std::string_view::npos) return located{.folder = std::move(folder), .name = component};
    file_descriptor next(::openat(folder.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return fail(last_error());
    folder = std::move(next);
    name.remove_prefix(slash + 1);
  }
}

result<opened_file> open_regular(int folder, const std::string& name, bool follow) {
  // O_NONBLOCK: opening a pipe does not wait for its writer. It means nothing to regular files.
  opened_file file{
      .descriptor = file_descriptor(
          ::openat(folder, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW)))};
  if (!file.descriptor) return fail(last_error());
  struct stat about = {};
  if (::fstat(file.descriptor.get(), &about) != 0) return fail(last_error());
  if (!S_ISREG(about.st_mode)) return fail(errc::not_a_regular_file);
  file.size = static_cast<std::uint64_t>(about.st_size);
  return file;
}

bool shortened(int descriptor, std::uint64_t size) noexcept {
  struct stat about = {};
  return ::fstat(descriptor, &about) == 0 && static_cast<std::uint64_t>(about.st_size) < size;
}

status status_of(std::error_code error) noexcept {
  if (error == errc::not_a_regular_file) return status::not_regular;
  if (error == errc::bad_file_name) return status::bad_name;
  switch (error.value()) {
    case ENAMETOOLONG:
      return status::bad_name;
    case ENOENT:
    case ENOTDIR:
      return status::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return status::permission_denied;
    case ELOOP:
    case EISDIR:
    case ENXIO:
      return status::not_regular;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return status::no_space;
    default:
      return status::io_error;
  }
}

}  // namespace iwarp::tools::copy
