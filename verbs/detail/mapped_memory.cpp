#include "verbs/detail/mapped_memory.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace iwarp::verbs::detail {

bool is_mapped(const_bytes memory, bool writable) {
  if (memory.empty()) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  if (begin == 0 || end < begin) return false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (maps == nullptr) return true;
  std::uintptr_t covered = begin;  // octets below this are mapped as wanted; the list is in order of address
  char line[512];
  bool line_start = true;
  while (covered < end && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const bool whole_start = line_start;
    line_start = std::char_traits<char>::find(line, std::char_traits<char>::length(line), '\n') != nullptr;
    if (!whole_start) continue;  // the rest of a long line
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char rights[5] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3) continue;
    if (to <= covered) continue;
    if (from > covered) return false;
    if (rights[0] != 'r' || (writable && rights[1] != 'w')) return false;
    covered = to;
  }
  return covered >= end;
}

}  // namespace iwarp::verbs::detail
