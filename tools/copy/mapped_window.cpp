#include "tools/copy/mapped_window.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "tools/copy/file_tree.hpp"

namespace iwarp::tools::copy {
namespace {

// What the signal handler may look at: fixed memory, atomics without locks.
struct slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  // 0: not in use. Written last, cleared first.
  std::atomic<bool> damaged{false};
};
std::array<slot, 8192> slots;
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
std::uintptr_t page_size = 4096;

void on_bus_error(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (slot& each : slots) {
    const std::uintptr_t end = each.end.load();
    const std::uintptr_t begin = each.begin.load();
    if (end == 0 || address < begin || address >= end) continue;
    // Everything from this page on is beyond the end of the file now: private zeros take its place, and the
    // instruction that stumbled goes on.
    const std::uintptr_t page = address & ~(page_size - 1);
    void* const target = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr): the faulting page
    if (::mmap(target, end - page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
               0) != MAP_FAILED) {
      each.damaged.store(true);
      errno = saved;
      return;
    }
  }
  // Not ours: the instruction is tried again and ends the process as it would have without us.
  std::signal(signal, SIG_DFL);
  errno = saved;
}

}  // namespace

void guard_mapped_files() {
  page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  // NODEFER: two threads, or a fault inside the handler's neighbour, are handled each on their own.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
  // A file that outgrows the process's limit (ulimit -f) is an error of one copy, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
}

result<mapped_window> mapped_window::map(int descriptor, std::uint64_t offset, std::size_t length, bool writable) {
  std::size_t free = 0;
  while (free < slots.size() && slots[free].taken.exchange(true)) ++free;
  if (free == slots.size()) return fail(std::make_error_code(std::errc::too_many_files_open));
  void* const address = ::mmap(nullptr, length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor,
                               static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    const auto error = last_error();
    slots[free].taken.store(false);
    return fail(error);
  }
  // Read once, from front to back.
  ::madvise(address, length, MADV_SEQUENTIAL);
  slot& mine = slots[free];
  mine.damaged.store(false);
  mine.begin.store(reinterpret_cast<std::uintptr_t>(address));
  mine.end.store(reinterpret_cast<std::uintptr_t>(address) + length);
  return mapped_window(as_mutable_bytes(address, length), free);
}

mapped_window::mapped_window(mapped_window&& other) noexcept
    : octets_(std::exchange(other.octets_, {})), slot_(other.slot_) {}

mapped_window& mapped_window::operator=(mapped_window&& other) noexcept {
  std::swap(octets_, other.octets_);
  std::swap(slot_, other.slot_);
  return *this;
}

mapped_window::~mapped_window() {
  if (octets_.empty()) return;
  slots[slot_].end.store(0);
  ::munmap(octets_.data(), octets_.size());
  slots[slot_].taken.store(false);
}

bool mapped_window::damaged() const noexcept { return !octets_.empty() && slots[slot_].damaged.load(); }

}  // namespace iwarp::tools::copy
