#include "tools/copy/protocol.hpp"

#include <algorithm>
#include <cstring>

namespace iwarp::tools::copy {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp-copy"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {  // no default
      case errc::wrong_length:
        return "a control message has the wrong length: the peer does not speak iwarp-copy";
      case errc::not_ours:
        return "a control message has the wrong mark: the peer does not speak iwarp-copy";
      case errc::wrong_version:
        return "the peer speaks another version of iwarp-copy's protocol";
      case errc::wrong_type:
        return "the peer sent a control message out of turn";
      case errc::bad_field:
        return "a control message has a field out of its range";
      case errc::bad_file_name:
        return "not a name below the served folder";
      case errc::not_a_regular_file:
        return "not a regular file";
    }
    return "unknown iwarp-copy error " + std::to_string(value);
  }
};

enum class type : std::uint8_t { request = 1, answer, window, window_done, finish, outcome };
constexpr std::uint32_t mark = 0x49574350;  // "IWCP"
constexpr std::uint8_t version = 1;
constexpr status last_status = status::read_only;

void emit_head(mutable_bytes out, type t, status s = status::ok) noexcept {
  std::fill(out.begin(), out.end(), std::byte{0});
  store_be<std::uint32_t>(out.first<4>(), mark);
  out[4] = std::byte{version};
  out[5] = static_cast<std::byte>(t);
  out[6] = static_cast<std::byte>(s);
}

bool all_zero(const_bytes in) noexcept {
  return std::all_of(in.begin(), in.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Checks the head and the length; the result is the status.
result<status> parse_head(const_bytes in, type expected, std::size_t octets, bool from_server) {
  // The mark comes first, so that a stranger is called one whatever the length of what it said.
  if (in.size() < 8) return fail(errc::wrong_length);
  if (load_be<std::uint32_t>(in.first<4>()) != mark) return fail(errc::not_ours);
  if (std::to_integer<std::uint8_t>(in[4]) != version) return fail(errc::wrong_version);
  if (in[5] != static_cast<std::byte>(expected)) return fail(errc::wrong_type);
  if (in.size() != octets) return fail(errc::wrong_length);
  const auto s = std::to_integer<std::uint8_t>(in[6]);
  if (s > (from_server ? static_cast<std::uint8_t>(last_status) : 0) || in[7] != std::byte{0})
    return fail(errc::bad_field);
  return static_cast<status>(s);
}

void emit_digest(std::span<std::byte, 48> out, std::uint64_t size, const sha256_digest& digest) noexcept {
  store_be<std::uint64_t>(out.subspan<8, 8>(), size);
  std::copy(digest.begin(), digest.end(), out.begin() + 16);
}

sha256_digest parse_digest(const_bytes in) noexcept {
  sha256_digest digest;
  std::copy_n(in.begin() + 16, digest.size(), digest.begin());
  return digest;
}

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

std::string_view describe(status s) noexcept {
  switch (s) {  // no default
    case status::ok:
      return "success";
    case status::bad_name:
      return "not a name below the served folder";
    case status::not_found:
      return "no such file or folder";
    case status::permission_denied:
      return "permission denied";
    case status::not_regular:
      return "not a regular file";
    case status::no_space:
      return "no space left on the server's disk";
    case status::changed:
      return "the server's file changed while it was copied";
    case status::checksum_mismatch:
      return "checksum mismatch: what arrived is not what was sent";
    case status::io_error:
      return "the server's file system failed";
    case status::read_only:
      return "the server takes no files";
  }
  return "unknown status";
}

void request::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::request);
  out[8] = static_cast<std::byte>(op);
  store_be<std::uint16_t>(out.subspan<10, 2>(), static_cast<std::uint16_t>(name.size()));
  store_be<std::uint64_t>(out.subspan<16, 8>(), size);
  std::memcpy(out.data() + 24, name.data(), std::min(name.size(), max_name));
}

result<request> request::parse(const_bytes in) {
  IWARP_TRY([[maybe_unused]] const auto head, parse_head(in, type::request, octets, false));
  const auto op = std::to_integer<std::uint8_t>(in[8]);
  const std::size_t length = load_be<std::uint16_t>(in.subspan<10, 2>());
  const auto size = load_be<std::uint64_t>(in.subspan<16, 8>());
  const bool put = op == static_cast<std::uint8_t>(operation::put);
  if ((!put && op != static_cast<std::uint8_t>(operation::get)) || in[9] != std::byte{0} ||
      !all_zero(in.subspan(12, 4)) || length == 0 || length > max_name || !all_zero(in.subspan(24 + length)) ||
      size > (put ? max_file_size : 0))
    return fail(errc::bad_field);
  return request{.op = static_cast<operation>(op),
                 .size = size,
                 .name = std::string(reinterpret_cast<const char*>(in.data() + 24), length)};
}

void answer::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::answer, status);
  store_be<std::uint64_t>(out.subspan<8, 8>(), size);
}

result<answer> answer::parse(const_bytes in) {
  IWARP_TRY(const auto s, parse_head(in, type::answer, octets, true));
  const auto size = load_be<std::uint64_t>(in.subspan<8, 8>());
  if (size > max_file_size) return fail(errc::bad_field);
  return answer{.status = s, .size = size};
}

void window::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::window);
  store_be<std::uint64_t>(out.subspan<8, 8>(), offset);
  store_be<std::uint32_t>(out.subspan<16, 4>(), length);
  store_be<std::uint32_t>(out.subspan<20, 4>(), key.value);
  store_be<std::uint64_t>(out.subspan<24, 8>(), address);
}

result<window> window::parse(const_bytes in) {
  IWARP_TRY([[maybe_unused]] const auto head, parse_head(in, type::window, octets, false));
  const window w{.offset = load_be<std::uint64_t>(in.subspan<8, 8>()),
                 .length = load_be<std::uint32_t>(in.subspan<16, 4>()),
                 .key = {load_be<std::uint32_t>(in.subspan<20, 4>())},
                 .address = load_be<std::uint64_t>(in.subspan<24, 8>())};
  if (w.length == 0 || w.length > window_size || w.offset > max_file_size) return fail(errc::bad_field);
  return w;
}

void window_done::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::window_done, status);
  store_be<std::uint64_t>(out.subspan<8, 8>(), offset);
  store_be<std::uint32_t>(out.subspan<16, 4>(), length);
}

result<window_done> window_done::parse(const_bytes in) {
  IWARP_TRY(const auto s, parse_head(in, type::window_done, octets, true));
  if (!all_zero(in.subspan(20, 4))) return fail(errc::bad_field);
  return window_done{.status = s,
                     .offset = load_be<std::uint64_t>(in.subspan<8, 8>()),
                     .length = load_be<std::uint32_t>(in.subspan<16, 4>())};
}

void finish::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::finish);
  emit_digest(out, size, digest);
}

result<finish> finish::parse(const_bytes in) {
  IWARP_TRY([[maybe_unused]] const auto head, parse_head(in, type::finish, octets, false));
  return finish{.size = load_be<std::uint64_t>(in.subspan<8, 8>()), .digest = parse_digest(in)};
}

void outcome::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out, type::outcome, status);
  emit_digest(out, size, digest);
}

result<outcome> outcome::parse(const_bytes in) {
  IWARP_TRY(const auto s, parse_head(in, type::outcome, octets, true));
  return outcome{.status = s, .size = load_be<std::uint64_t>(in.subspan<8, 8>()), .digest = parse_digest(in)};
}

}  // namespace iwarp::tools::copy
