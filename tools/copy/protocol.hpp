// Part of iwarp-copy.
// The control protocol of iwarp-copy, version 1: messages of fixed size in RDMA Sends, all numbers big-endian.
//
// The client offers its file as windows; the server moves the octets between its mapped file and the client's, by RDMA
// Read for a put and by RDMA Write for a get.
//
//   client                                      server
//   request (put|get, name, size of a put) ->
//                                            <- answer (status, size of a get)
//   window (offset, length, STag, address) ->   at most `max_windows` without an answer, in the order of the file,
//   window ...                             ->   together exactly the file, none for an empty one
//                                            <- window_done (status, offset, length)
//   finish (size, SHA-256 of its file)     ->
//                                            <- outcome (status, size, SHA-256 of its file)
//
// A status other than ok is the server's last word; it closes then. A put gets its final name before `outcome` with ok.
// Who gets a message that is not the next one of this picture, or has a field out of its range, closes.
//
// Every message begins with: 0..3 "IWCP" | 4 version 1 | 5 type | 6 status (0 from the client) | 7 zero.
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

namespace iwarp::tools::copy {

inline constexpr std::uint16_t default_port = 7175;
inline constexpr std::uint64_t window_size = std::uint64_t{64} << 20;  ///< of every window but the last
inline constexpr std::uint32_t max_windows = 2;
inline constexpr std::size_t max_name = 1024;
inline constexpr std::uint32_t max_message = 1048;
inline constexpr std::uint64_t max_file_size = std::uint64_t{1} << 62;

using sha256_digest = std::array<std::byte, 32>;

enum class operation : std::uint8_t { put = 1, get = 2 };

/// Why the server does not go on.
enum class status : std::uint8_t {
  ok = 0,
  bad_name,           ///< empty, too long, absolute, or with an empty, "." or ".." component
  not_found,          ///< no such file, or no such folder for a put
  permission_denied,  ///< the server's user may not read or write there
  not_regular,        ///< a folder, device, pipe, symbolic link, ...
  no_space,           ///< the file does not fit on the server's disk
  changed,            ///< the server's file changed while it was copied
  checksum_mismatch,  ///< put: what arrived is not what the client sent
  io_error,           ///< anything else the server's file system said
  read_only,          ///< the server takes no put
};
std::string_view describe(status s) noexcept;

/// 8 operation | 9 zero | 10..11 length of the name | 12..15 zero | 16..23 size (0 for a get) | 24..1047 name, zeros.
struct request {
  operation op = operation::get;
  std::uint64_t size = 0;
  std::string name;

  static constexpr std::size_t octets = 1048;
  void emit(std::span<std::byte, octets> out) const noexcept;  ///< the name has 1..max_name octets
  static result<request> parse(const_bytes in);
  bool operator==(const request&) const = default;
};

/// 8..15 size of a get.
struct answer {
  copy::status status = copy::status::ok;
  std::uint64_t size = 0;

  static constexpr std::size_t octets = 16;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static result<answer> parse(const_bytes in);
  bool operator==(const answer&) const = default;
};

/// 8..15 offset in the file | 16..19 length | 20..23 STag | 24..31 address behind the STag.
struct window {
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  stag key;
  std::uint64_t address = 0;

  static constexpr std::size_t octets = 32;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static result<window> parse(const_bytes in);
  bool operator==(const window&) const = default;
};

/// 8..15 offset in the file | 16..19 length | 20..23 zero.
struct window_done {
  copy::status status = copy::status::ok;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;

  static constexpr std::size_t octets = 24;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static result<window_done> parse(const_bytes in);
  bool operator==(const window_done&) const = default;
};

/// 8..15 size | 16..47 SHA-256.
struct finish {
  std::uint64_t size = 0;
  sha256_digest digest = {};

  static constexpr std::size_t octets = 48;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static result<finish> parse(const_bytes in);
  bool operator==(const finish&) const = default;
};

/// 8..15 size | 16..47 SHA-256.
struct outcome {
  copy::status status = copy::status::ok;
  std::uint64_t size = 0;
  sha256_digest digest = {};

  static constexpr std::size_t octets = 48;
  void emit(std::span<std::byte, octets> out) const noexcept;
  static result<outcome> parse(const_bytes in);
  bool operator==(const outcome&) const = default;
};

/// The length of the next window of a file.
constexpr std::uint32_t window_length(std::uint64_t file_size, std::uint64_t offset) noexcept {
  const std::uint64_t left = file_size - offset;
  return static_cast<std::uint32_t>(left < window_size ? left : window_size);
}

enum class errc {
  // Of a parse() above.
  wrong_length = 1,  ///< not the size of this message
  not_ours,          ///< does not begin with "IWCP"
  wrong_version,     ///< another version of the protocol
  wrong_type,        ///< another message was to come now
  bad_field,         ///< a field is out of its range, or a reserved one is not zero
  // Of files.
  bad_file_name,       ///< not a plain relative name: see status::bad_name
  not_a_regular_file,  ///< see status::not_regular
};
const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::tools::copy

template <>
struct std::is_error_code_enum<iwarp::tools::copy::errc> : std::true_type {};
