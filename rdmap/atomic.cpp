#include "rdmap/atomic.hpp"

namespace iwarp::rdmap {

atomic_request atomic_request::parse(std::span<const std::byte, atomic_request_size> in) noexcept {
  return {.op = static_cast<atomic_opcode>(load_be<std::uint32_t>(in.subspan<0, 4>()) & 0x0F),
          .identifier = load_be<std::uint32_t>(in.subspan<4, 4>()),
          .remote = {load_be<std::uint32_t>(in.subspan<8, 4>())},
          .remote_offset = load_be<std::uint64_t>(in.subspan<12, 8>()),
          .data = load_be<std::uint64_t>(in.subspan<20, 8>()),
          .mask = load_be<std::uint64_t>(in.subspan<28, 8>()),
          .compare = load_be<std::uint64_t>(in.subspan<36, 8>()),
          .compare_mask = load_be<std::uint64_t>(in.subspan<44, 8>())};
}

void atomic_request::emit(std::span<std::byte, atomic_request_size> out) const noexcept {
  store_be(out.subspan<0, 4>(), static_cast<std::uint32_t>(op) & 0x0F);
  store_be(out.subspan<4, 4>(), identifier);
  store_be(out.subspan<8, 4>(), remote.value);
  store_be(out.subspan<12, 8>(), remote_offset);
  store_be(out.subspan<20, 8>(), data);
  store_be(out.subspan<28, 8>(), mask);
  store_be(out.subspan<36, 8>(), compare);
  store_be(out.subspan<44, 8>(), compare_mask);
}

atomic_response atomic_response::parse(std::span<const std::byte, atomic_response_size> in) noexcept {
  return {.identifier = load_be<std::uint32_t>(in.subspan<0, 4>()),
          .value = load_be<std::uint64_t>(in.subspan<4, 8>())};
}

void atomic_response::emit(std::span<std::byte, atomic_response_size> out) const noexcept {
  store_be(out.subspan<0, 4>(), identifier);
  store_be(out.subspan<4, 8>(), value);
}

}  // namespace iwarp::rdmap
