#include "tools/ping/protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/common/failure.hpp"

namespace iwarp::tools::ping {

void advert::emit(std::span<std::byte, message_size> out) const noexcept {
  store_be<std::uint64_t>(out.subspan<0, 8>(), buffer.offset);
  store_be<std::uint32_t>(out.subspan<8, 4>(), buffer.key.value);
  store_be<std::uint32_t>(out.subspan<12, 4>(), size);
}

advert advert::parse(std::span<const std::byte, message_size> in) noexcept {
  return {.buffer = {.key = {load_be<std::uint32_t>(in.subspan<8, 4>())},
                     .offset = load_be<std::uint64_t>(in.subspan<0, 8>())},
          .size = load_be<std::uint32_t>(in.subspan<12, 4>())};
}

void fill(mutable_bytes data, std::uint64_t number) {
  constexpr unsigned first = 'A';
  constexpr unsigned count = 'z' - 'A' + 1;
  const std::string prefix = fmt::format("rdma-ping-{}: ", number);
  const std::size_t head = std::min(prefix.size(), data.size());
  std::memcpy(data.data(), prefix.data(), head);
  for (std::size_t i = head; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(first + (number + (i - head)) % count);
  data.back() = std::byte{0};
}

std::string text_of(const_bytes data) {
  const auto end = std::find(data.begin(), data.end(), std::byte{0});
  return printable({reinterpret_cast<const char*>(data.data()), static_cast<std::size_t>(end - data.begin())});
}

}  // namespace iwarp::tools::ping
