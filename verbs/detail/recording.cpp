#include "verbs/detail/recording.hpp"

#include <stdlib.h>
#include <unistd.h>

#include "verbs/error.hpp"

namespace iwarp::verbs::detail {
namespace {

using recording = std::shared_ptr<tcp_glue::recording_file>;

result<recording> create(std::string path) {
  const std::string id = std::to_string(::getpid());
  for (auto at = path.find("%p"); at != std::string::npos; at = path.find("%p", at + id.size()))
    path.replace(at, 2, id);
  auto made = tcp_glue::recording_file::create(path);
  if (!made) return fail(errc::recording_failed);
  return *std::move(made);
}

// Kept until the process ends: a program that makes one context after the other wants all of them in the file.
result<recording> of_environment() {
  // Not for set-user-ID programs: whoever starts one must not choose what files it writes.
  const char* path = ::secure_getenv("IWARP_PCAP");
  if (path == nullptr || *path == '\0') return recording{};
  return create(path);
}

}  // namespace

result<recording> open_recording(const std::string& asked) {
  if (!asked.empty()) return create(asked);
  static const result<recording> environment = of_environment();
  return environment;
}

}  // namespace iwarp::verbs::detail
