#include "tools/run/program_file.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "tools/common/failure.hpp"

namespace iwarp::tools {
namespace {

bool can_run(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string interpreter_of(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return std::string(line.substr(0, line.find_first_of(" \t\n")));
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (can_run(name)) return name;
    throw failure(fmt::format("cannot run {}: {}", name, std::strerror(errno == 0 ? EACCES : errno)));
  }
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;;) {
    const auto colon = rest.find(':');
    const std::string candidate = fmt::format("{}/{}", colon == 0 || rest.empty() ? "." : rest.substr(0, colon), name);
    if (can_run(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  throw failure(fmt::format("there is no program {} in PATH", name));
}

void require_preload(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) == 0 && ((s.st_mode & S_ISUID) != 0 || (s.st_mode & S_ISGID) != 0)) {
    throw failure(fmt::format("{} is set-user-ID or set-group-ID: the system loads no other library into it", path));
  }
  if (::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0 && ::geteuid() != 0) {
    throw failure(fmt::format("{} has file capabilities: the system loads no other library into it", path));
  }
  std::ifstream file(path, std::ios::binary);
  std::array<char, 256> head{};
  file.read(head.data(), head.size());
  const auto size = static_cast<std::size_t>(file.gcount());
  if (size >= 2 && head[0] == '#' && head[1] == '!') {
    const std::string interpreter = interpreter_of(std::string_view(head.data() + 2, size - 2));
    if (!interpreter.empty() && interpreter != path) require_preload(interpreter);
    return;
  }
  Elf64_Ehdr header{};
  if (size < sizeof header || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return;  // execv() has the say
  std::memcpy(&header, head.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    throw failure(fmt::format("{} is not for x86-64", path));
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.clear();
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return;
    if (segment.p_type == PT_INTERP) return;
  }
  throw failure(fmt::format("{} is statically linked: no library can take the place of its own", path));
}

}  // namespace iwarp::tools
