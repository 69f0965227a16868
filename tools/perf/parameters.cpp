#include "tools/perf/parameters.hpp"

#include <algorithm>

namespace iwarp::tools::perf {
namespace {

constexpr std::uint32_t mark = 0x49575046;  // "IWPF"
constexpr std::byte version{1};

void emit_head(mutable_bytes out) noexcept {
  std::fill(out.begin(), out.end(), std::byte{0});
  store_be<std::uint32_t>(out.first<4>(), mark);
  out[4] = version;
}

bool head_fits(const_bytes in) noexcept { return load_be<std::uint32_t>(in.first<4>()) == mark && in[4] == version; }

}  // namespace

std::string_view to_string(operation op) noexcept {
  switch (op) {  // no default
    case operation::write:
      return "write";
    case operation::read:
      return "read";
    case operation::send:
      return "send";
  }
  return "?";
}

void parameters::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out);
  out[5] = static_cast<std::byte>(op);
  out[6] = static_cast<std::byte>(latency ? 1 : 0);
  store_be<std::uint32_t>(out.subspan<8, 4>(), size);
  store_be<std::uint32_t>(out.subspan<12, 4>(), depth);
  store_be<std::uint32_t>(out.subspan<16, 4>(), buffer.key.value);
  store_be<std::uint64_t>(out.subspan<20, 8>(), buffer.offset);
}

std::optional<parameters> parameters::parse(const_bytes in) noexcept {
  if (in.size() != octets || !head_fits(in)) return std::nullopt;
  const auto op = std::to_integer<std::uint8_t>(in[5]);
  const auto latency = std::to_integer<std::uint8_t>(in[6]);
  const parameters p{.op = static_cast<operation>(op),
                     .latency = latency == 1,
                     .size = load_be<std::uint32_t>(in.subspan<8, 4>()),
                     .depth = load_be<std::uint32_t>(in.subspan<12, 4>()),
                     .buffer = {.key = {load_be<std::uint32_t>(in.subspan<16, 4>())},
                                .offset = load_be<std::uint64_t>(in.subspan<20, 8>())}};
  if (op < 1 || op > 3 || latency > 1 || in[7] != std::byte{0} || p.size == 0 || p.size > max_size || p.depth == 0 ||
      p.depth > max_depth)
    return std::nullopt;
  return p;
}

void grant::emit(std::span<std::byte, octets> out) const noexcept {
  emit_head(out);
  store_be<std::uint32_t>(out.subspan<8, 4>(), buffer.key.value);
  store_be<std::uint64_t>(out.subspan<12, 8>(), buffer.offset);
}

std::optional<grant> grant::parse(const_bytes in) noexcept {
  if (in.size() != octets || !head_fits(in)) return std::nullopt;
  return grant{.buffer = {.key = {load_be<std::uint32_t>(in.subspan<8, 4>())},
                          .offset = load_be<std::uint64_t>(in.subspan<12, 8>())}};
}

}  // namespace iwarp::tools::perf
