#include "tools/common/failure.hpp"

#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <new>

namespace iwarp::tools {
namespace {

const char* program_name = "iwarp";

}  // namespace

std::string describe(std::error_code error) {
  std::string text = error.message();
  // "Connection refused" is a whole sentence for errno; "CRC mismatch" and "MPA ..." keep their capitals.
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
      std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (const auto octet = static_cast<unsigned char>(c); octet < 0x20 || octet == 0x7f) c = '?';
  return out;
}

void complain(std::string_view text) {
  const std::string line = std::string(program_name) + ": " + printable(text) + "\n";
  // One write, so that lines of several threads do not mix; there is nowhere to report that stderr is closed.
  const char* next = line.data();
  std::size_t left = line.size();
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    next += written;
    left -= static_cast<std::size_t>(written);
  }
}

int run_program(const char* program, const std::function<int()>& body) {
  program_name = program;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& problem) {
    complain(problem.what());
  }
  return 1;
}

}  // namespace iwarp::tools
