// Runs every case, or those whose name holds the argument. The last line is "N passed, N failed".
#include "misuse.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { seconds_per_case = 10 };

static int failures;

void failed(const char* file, int line, const char* what, const char* detail) {
  const char* base = strrchr(file, '/');
  printf("  %s:%d: %s%s%s\n", base == NULL ? file : base + 1, line, what, detail == NULL ? "" : ": ",
         detail == NULL ? "" : detail);
  ++failures;
}

_Noreturn void give_up(void) {
  fflush(stdout);
  _exit(1);
}

static const char* name_of(int error) { return error == 0 ? "0" : strerrorname_np(error); }

void check_returns(const char* file, int line, const char* what, int got, int wanted) {
  if (wanted == ANY_ERROR ? got != 0 : got == wanted) return;
  char detail[128];
  const char* name = name_of(got);
  snprintf(detail, sizeof detail, "%d (%s) instead of %s", got, name == NULL ? "?" : name,
           wanted == ANY_ERROR ? "an error" : name_of(wanted));
  failed(file, line, what, detail);
}

void check_errno(const char* file, int line, const char* what, bool failed_as_told, int wanted) {
  const int error = errno;
  if (failed_as_told && (wanted == ANY_ERROR ? error != 0 : error == wanted)) return;
  char detail[128];
  snprintf(detail, sizeof detail, "%s, errno %s instead of %s", failed_as_told ? "it failed" : "it did not fail",
           name_of(error), wanted == ANY_ERROR ? "any" : name_of(wanted));
  failed(file, line, what, detail);
}

/// In a child: whether it passed, and why not on standard output.
static bool run(const struct test_case* c) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds_per_case);
    c->run();
    fflush(stdout);
    // Not _exit(): the end of a program is part of what is tested.
    exit(failures == 0 ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) {
    printf("  %s\n", WTERMSIG(status) == SIGALRM ? "took too long" : strsignal(WTERMSIG(status)));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char** argv) {
  const struct test_case* const groups[] = {device_cases,  memory_cases,   completion_cases, queue_pair_cases,
                                            posting_cases, extended_cases, cm_cases,         lifetime_cases};
  int passed = 0, not_passed = 0;
  for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
    for (const struct test_case* c = groups[g]; c->name != NULL; ++c) {
      if (argc > 1 && strstr(c->name, argv[1]) == NULL) continue;
      const bool fine = run(c);
      printf("%s %s\n", fine ? "ok  " : "FAIL", c->name);
      if (fine) {
        ++passed;
      } else {
        ++not_passed;
      }
    }
  }
  printf("%d passed, %d failed\n", passed, not_passed);
  return not_passed == 0 && passed != 0 ? 0 : 1;
}
