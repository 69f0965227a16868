// Lets a User Mode Linux kernel of 6.1 run on processors with a large extended state (AVX-512, AMX).
//
// UML saves and restores the registers of its guest's processes with ptrace(PTRACE_*REGSET, NT_X86_XSTATE) in a buffer
// of fixed size. Where the processor's state is larger, PTRACE_SETREGSET refuses the shorter buffer with EFAULT and the
// guest kernel stops with "ptrace set fp regs failed, errno = 14". Preloaded, this ptrace() gets the whole state first,
// lays the octets it was given over it, and sets the whole.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

// AMX needs some 11 KiB. UML calls from one thread.
static char whole[1 << 16];

static long set_state(pid_t pid, void* set, const struct iovec* given) {
  struct iovec all = {.iov_base = whole, .iov_len = sizeof whole};
  if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, set, &all) != 0) return -1;
  if (given->iov_len >= all.iov_len) return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, set, given);
  memcpy(whole, given->iov_base, given->iov_len);
  return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, set, &all);
}

long ptrace(enum __ptrace_request request, ...) {
  va_list list;
  va_start(list, request);
  const pid_t pid = va_arg(list, pid_t);
  void* const address = va_arg(list, void*);
  void* const data = va_arg(list, void*);
  va_end(list);
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) return set_state(pid, address, data);
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    // The C library's ptrace() returns the word; the system call stores it.
    long word = 0;
    if (syscall(SYS_ptrace, request, pid, address, &word) < 0) return -1;
    errno = 0;
    return word;
  }
  return syscall(SYS_ptrace, request, pid, address, data);
}
