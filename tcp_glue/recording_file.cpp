#include "tcp_glue/recording_file.hpp"

#include "tcp_glue/native_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace iwarp::tcp_glue {
namespace {

constexpr std::size_t file_header_size = 24;
constexpr std::size_t record_header_size = 16;
constexpr std::size_t tcp_header_size = 20;
constexpr std::uint32_t magic_nanoseconds = 0xa1b23c4d;
constexpr std::uint32_t link_type_raw_ip = 101;

/// The Internet checksum (RFC 1071) over any number of pieces of any length.
class checksum {
 public:
  void add(const_bytes octets) noexcept {
    std::size_t i = 0;
    if (odd_ && !octets.empty()) {
      sum_ += std::to_integer<std::uint64_t>(octets[0]);
      i = 1;
      odd_ = false;
    }
    for (; i + 4 <= octets.size(); i += 4) sum_ += load_be<std::uint32_t>(octets.subspan(i).first<4>());
    for (; i + 2 <= octets.size(); i += 2) sum_ += load_be<std::uint16_t>(octets.subspan(i).first<2>());
    if (i < octets.size()) {
      sum_ += std::to_integer<std::uint64_t>(octets[i]) << 8;
      odd_ = true;
    }
  }
  [[nodiscard]] std::uint16_t value() const noexcept {
    std::uint64_t sum = sum_;
    while (sum > 0xFFFF) sum = (sum >> 16) + (sum & 0xFFFF);
    return static_cast<std::uint16_t>(~sum);
  }

 private:
  std::uint64_t sum_ = 0;  // 2^32 words of 32 bits fit
  bool odd_ = false;
};

/// Fills fields one behind the other.
class field_writer {
 public:
  explicit field_writer(mutable_bytes out) noexcept : out_(out) {}
  template <std::unsigned_integral T>
  field_writer& put(T value) noexcept {
    store_be<T>(out_.subspan(size_).first<sizeof(T)>(), value);
    size_ += sizeof(T);
    return *this;
  }
  template <std::size_t N>
  field_writer& put(const std::array<unsigned char, N>& octets) noexcept {
    std::memcpy(&out_[size_], octets.data(), N);
    size_ += N;
    return *this;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  mutable_bytes out_;
  std::size_t size_ = 0;
};

bool is_v4(const endpoint& where) noexcept { return where.address().is_v4() || where.address().to_v6().is_v4_mapped(); }
boost::asio::ip::address_v4 as_v4(const endpoint& where) {
  return where.address().is_v4()
             ? where.address().to_v4()
             : boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, where.address().to_v6());
}

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::uint8_t hop_limit = 64;

/// Writes the IP header and starts the TCP checksum with its pseudo header. Returns the header's octets.
std::size_t put_ip(mutable_bytes out, const recording_file::segment& what, std::size_t tcp_size, checksum& tcp_sum) {
  std::array<std::byte, 4> length_and_protocol{};
  store_be<std::uint16_t>(std::span(length_and_protocol).first<2>(), static_cast<std::uint16_t>(tcp_size));
  length_and_protocol[3] = std::byte{protocol_tcp};
  tcp_sum.add(length_and_protocol);
  field_writer fields(out);
  if (is_v4(what.from) && is_v4(what.to)) {
    fields.put<std::uint16_t>(0x4500).put(static_cast<std::uint16_t>(20 + tcp_size)).put<std::uint16_t>(0);
    fields.put<std::uint16_t>(0x4000).put(hop_limit).put(protocol_tcp).put<std::uint16_t>(0);
    fields.put(as_v4(what.from).to_bytes()).put(as_v4(what.to).to_bytes());
    checksum header;
    header.add(out.first(fields.size()));
    store_be<std::uint16_t>(out.subspan<10, 2>(), header.value());
    tcp_sum.add(out.subspan<12, 8>());
  } else {
    fields.put<std::uint32_t>(0x6000'0000).put(static_cast<std::uint16_t>(tcp_size)).put(protocol_tcp).put(hop_limit);
    fields.put(what.from.address().to_v6().to_bytes()).put(what.to.address().to_v6().to_bytes());
    tcp_sum.add(out.subspan<8, 32>());
  }
  return fields.size();
}

bool write_all(int fd, std::span<iovec> pieces, std::size_t size) noexcept {
  const ssize_t n = ::writev(fd, pieces.data(), static_cast<int>(pieces.size()));
  return n >= 0 && static_cast<std::size_t>(n) == size;
}

}  // namespace

result<std::shared_ptr<recording_file>> recording_file::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fail(last_errno());
  std::shared_ptr<recording_file> made(new recording_file(fd));
  // Locked before it is emptied: a running recording is not destroyed by one that cannot begin.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return fail(last_errno());
  if (struct stat status{}; ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(fd, 0) != 0)
    return fail(last_errno());
  std::array<std::byte, file_header_size> header{};
  field_writer(header)
      .put(magic_nanoseconds)
      .put<std::uint16_t>(2)
      .put<std::uint16_t>(4)
      .put<std::uint64_t>(0)
      .put<std::uint32_t>(65'535)
      .put(link_type_raw_ip);
  std::array<iovec, 1> piece{{{header.data(), header.size()}}};
  if (!write_all(fd, piece, header.size()))
    return fail(errno != 0 ? last_errno() : make_error_code(std::errc::io_error));
  return made;
}

recording_file::~recording_file() { ::close(fd_); }

bool recording_file::begin(const endpoint& local, const endpoint& remote) {
  const std::lock_guard lock(mutex_);
  if (open_.contains({remote, local})) return false;
  open_.emplace(local, remote);
  return true;
}

void recording_file::end(const endpoint& local, const endpoint& remote) noexcept {
  const std::lock_guard lock(mutex_);
  open_.erase({local, remote});
}

void recording_file::record(const segment& what, std::span<const gather_piece> payload) noexcept {
  assert(payload.size() <= max_pieces);
  std::size_t payload_size = 0;
  checksum tcp_sum;

  std::array<std::byte, record_header_size + 40 + tcp_header_size> headers{};
  const mutable_bytes packet = std::span(headers).subspan(record_header_size);
  for (const gather_piece& piece : payload) payload_size += piece.size;
  assert(payload_size <= max_payload);
  const std::size_t ip_size = put_ip(packet, what, tcp_header_size + payload_size, tcp_sum);
  const mutable_bytes tcp = packet.subspan(ip_size, tcp_header_size);
  field_writer(tcp)
      .put(what.from.port())
      .put(what.to.port())
      .put(what.sequence)
      .put(what.acknowledgment)
      .put<std::uint8_t>(tcp_header_size / 4 << 4)
      .put(what.flags)
      .put<std::uint16_t>(0xFFFF)
      .put<std::uint32_t>(0);
  tcp_sum.add(tcp);

  std::array<iovec, max_pieces + 1> pieces;
  std::size_t count = 1;
  for (const gather_piece& piece : payload) {
    if (piece.size == 0) continue;
    tcp_sum.add(as_const_bytes(piece.data, piece.size));
    pieces[count++] = {const_cast<void*>(piece.data), piece.size};
  }
  store_be<std::uint16_t>(tcp.subspan<16, 2>(), tcp_sum.value());

  const std::size_t packet_size = ip_size + tcp_header_size + payload_size;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  field_writer(std::span(headers).first(record_header_size))
      .put(static_cast<std::uint32_t>(seconds.count()))
      .put(static_cast<std::uint32_t>(std::chrono::nanoseconds(now - seconds).count()))
      .put(static_cast<std::uint32_t>(packet_size))
      .put(static_cast<std::uint32_t>(packet_size));
  pieces[0] = {headers.data(), record_header_size + ip_size + tcp_header_size};

  const std::lock_guard lock(mutex_);
  if (failed_) return;
  struct stat before {};
  const bool known = ::fstat(fd_, &before) == 0;
  if (write_all(fd_, std::span(pieces).first(count), record_header_size + packet_size)) return;
  failed_ = true;
  // What a full disk left of the record would look like a damaged file.
  if (known && S_ISREG(before.st_mode)) [[maybe_unused]]
    const int ignored = ::ftruncate(fd_, before.st_size);
}

bool recording_file::writable() const noexcept {
  const std::lock_guard lock(mutex_);
  return !failed_;
}

}  // namespace iwarp::tcp_glue
