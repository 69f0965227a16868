#include "tools/dump/octet_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/iostreams/device/file_descriptor.hpp>
#include <boost/iostreams/filter/bzip2.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/lzma.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "tools/common/failure.hpp"

namespace iwarp::dump {
namespace {

namespace io = boost::iostreams;
using namespace std::string_view_literals;

constexpr std::size_t magic_size = 6;
constexpr std::size_t block_size = 256 * 1024;

/// The octets that were read to recognise the format, then the rest of the descriptor.
class peeked_source {
 public:
  using char_type = char;
  using category = io::source_tag;

  peeked_source(int fd, std::string_view peeked) : fd_(fd), size_(peeked.size()) {
    std::ranges::copy(peeked, head_.begin());
  }
  std::streamsize read(char* out, std::streamsize n) {
    if (used_ < size_) {
      const auto k = std::min(size_ - used_, static_cast<std::size_t>(n));
      std::copy_n(head_.data() + used_, k, out);
      used_ += k;
      return static_cast<std::streamsize>(k);
    }
    ssize_t got = 0;
    do {
      got = ::read(fd_, out, static_cast<std::size_t>(n));
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw std::ios_base::failure(std::strerror(errno));
    return got == 0 ? -1 : got;
  }

 private:
  int fd_;
  std::array<char, magic_size> head_{};
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace

struct octet_source::state {
  int fd = -1;
  bool owned = false;
  io::filtering_streambuf<io::input> chain;  // of a compressed source
  std::optional<peeked_source> plain;        // of a pipe
  std::string damage;
  std::FILE* stream = nullptr;

  ~state() {
    if (stream) std::fclose(stream);
    chain.reset();
    if (owned && fd >= 0) ::close(fd);
  }
};

namespace {

// A decompressor's exception becomes the end of the file, and its text is kept: what came before it is good.
template <class State>
ssize_t read_block(void* cookie, char* out, std::size_t n) {
  auto& s = *static_cast<State*>(cookie);
  try {
    return static_cast<ssize_t>(std::max<std::streamsize>(0, s.chain.sgetn(out, static_cast<std::streamsize>(n))));
  } catch (const std::exception& problem) {
    s.damage = problem.what();
    return 0;
  }
}

template <class State>
ssize_t read_plain(void* cookie, char* out, std::size_t n) {
  auto& s = *static_cast<State*>(cookie);
  try {
    return static_cast<ssize_t>(std::max<std::streamsize>(0, s.plain->read(out, static_cast<std::streamsize>(n))));
  } catch (const std::exception& problem) {
    s.damage = problem.what();
    return 0;
  }
}

}  // namespace

octet_source::octet_source(const std::string& path) : state_(std::make_unique<state>()) {
  state& s = *state_;
  if (path == "-") {
    s.fd = STDIN_FILENO;
  } else {
    s.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    s.owned = true;
  }
  if (s.fd < 0) throw tools::failure(fmt::format("{}: {}", path, std::strerror(errno)));
  std::array<char, magic_size> magic{};
  std::size_t got = 0;
  while (got < magic.size()) {
    const ssize_t n = ::read(s.fd, magic.data() + got, magic.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw tools::failure(fmt::format("{}: {}", path, std::strerror(errno)));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  const std::string_view head(magic.data(), got);
  bool compressed = true;
  if (head.starts_with("\x1f\x8b"sv)) {
    s.chain.push(io::gzip_decompressor(io::gzip::default_window_bits, block_size));
  } else if (head.starts_with("BZh"sv)) {
    s.chain.push(io::bzip2_decompressor());
  } else if (head.starts_with("\xfd"
                              "7zXZ\0"sv)) {
    s.chain.push(io::lzma_decompressor());
  } else if (head.starts_with("\x28\xb5\x2f\xfd"sv)) {
    s.chain.push(io::zstd_decompressor());
  } else {
    compressed = false;
  }
  if (!compressed && ::lseek(s.fd, -static_cast<off_t>(got), SEEK_CUR) >= 0) {
    // A plain file needs nobody in between.
    s.stream = ::fdopen(s.owned ? s.fd : ::dup(s.fd), "rb");
    if (s.stream) s.owned = false;
  } else if (!compressed) {
    // A pipe: what it has is handed on at once, for whoever watches tcpdump.
    s.plain.emplace(s.fd, head);
    s.stream =
        ::fopencookie(&s, "rb", {.read = &read_plain<state>, .write = nullptr, .seek = nullptr, .close = nullptr});
  } else {
    s.chain.push(peeked_source(s.fd, head), block_size);
    s.stream =
        ::fopencookie(&s, "rb", {.read = &read_block<state>, .write = nullptr, .seek = nullptr, .close = nullptr});
  }
  if (!s.stream) throw tools::failure(fmt::format("{}: {}", path, std::strerror(errno)));
  std::setvbuf(s.stream, nullptr, _IOFBF, block_size);
}

octet_source::~octet_source() = default;

std::FILE* octet_source::take() noexcept { return std::exchange(state_->stream, nullptr); }
const std::string& octet_source::damage() const noexcept { return state_->damage; }

}  // namespace iwarp::dump
