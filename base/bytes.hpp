// Public API.
// Views over octets and big-endian access to them. A view never owns, and never outlives the call it is passed to
// unless the name of what takes it says so.
// Threading: free functions on the caller's data.  Time: none.  I/O: none.
#pragma once

#include <boost/endian/conversion.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace iwarp {

using const_bytes = std::span<const std::byte>;
using mutable_bytes = std::span<std::byte>;

/// Reads a big-endian unsigned integer from exactly its own number of octets; a wrong extent does not compile.
template <std::unsigned_integral T>
[[nodiscard]] inline T load_be(std::span<const std::byte, sizeof(T)> in) noexcept {
  return boost::endian::endian_load<T, sizeof(T), boost::endian::order::big>(
      reinterpret_cast<const unsigned char*>(in.data()));
}

/// Writes `value` big-endian into exactly its own number of octets.
template <std::unsigned_integral T>
inline void store_be(std::span<std::byte, sizeof(T)> out, T value) noexcept {
  boost::endian::endian_store<T, sizeof(T), boost::endian::order::big>(reinterpret_cast<unsigned char*>(out.data()),
                                                                       value);
}

/// Reads a little-endian unsigned integer: the MPA CRC field is the only one on the wire (RFC 5044 s4.4).
template <std::unsigned_integral T>
[[nodiscard]] inline T load_le(std::span<const std::byte, sizeof(T)> in) noexcept {
  return boost::endian::endian_load<T, sizeof(T), boost::endian::order::little>(
      reinterpret_cast<const unsigned char*>(in.data()));
}

/// Writes `value` little-endian.
template <std::unsigned_integral T>
inline void store_le(std::span<std::byte, sizeof(T)> out, T value) noexcept {
  boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(reinterpret_cast<unsigned char*>(out.data()),
                                                                          value);
}

/// The octets of any trivially copyable object or array, for gather lists and tests.
[[nodiscard]] inline const_bytes as_const_bytes(const void* data, std::size_t size) noexcept {
  return {static_cast<const std::byte*>(data), size};
}
[[nodiscard]] inline mutable_bytes as_mutable_bytes(void* data, std::size_t size) noexcept {
  return {static_cast<std::byte*>(data), size};
}

/// One piece of a gather list. Laid out as POSIX `struct iovec`, so that the glue hands a list of these to the kernel
/// as it is (tcp_glue asserts the layout).
struct gather_piece {
  const void* data;
  std::size_t size;
};

}  // namespace iwarp
