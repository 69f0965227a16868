#include "rdmap/read_request.hpp"

namespace iwarp::rdmap {

read_request read_request::parse(std::span<const std::byte, read_request_size> in) noexcept {
  return {.sink = {load_be<std::uint32_t>(in.subspan<0, 4>())},
          .sink_offset = load_be<std::uint64_t>(in.subspan<4, 8>()),
          .size = load_be<std::uint32_t>(in.subspan<12, 4>()),
          .source = {load_be<std::uint32_t>(in.subspan<16, 4>())},
          .source_offset = load_be<std::uint64_t>(in.subspan<20, 8>())};
}

void read_request::emit(std::span<std::byte, read_request_size> out) const noexcept {
  store_be(out.subspan<0, 4>(), sink.value);
  store_be(out.subspan<4, 8>(), sink_offset);
  store_be(out.subspan<12, 4>(), size);
  store_be(out.subspan<16, 4>(), source.value);
  store_be(out.subspan<20, 8>(), source_offset);
}

}  // namespace iwarp::rdmap
