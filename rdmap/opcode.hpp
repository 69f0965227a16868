// Internal to rdmap; tests and capture tools use it too.
// The RDMAP control octet and its opcodes, with what each is at DDP (RFC 5040 s4.1-4.2, RFC 7306 s4).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <string_view>

namespace iwarp::rdmap {

enum class opcode : std::uint8_t {
  write = 0x0,
  read_request = 0x1,
  read_response = 0x2,
  send = 0x3,
  send_invalidate = 0x4,
  send_solicited = 0x5,
  send_solicited_invalidate = 0x6,
  terminate = 0x7,
  immediate = 0x8,            // RFC 7306
  immediate_solicited = 0x9,  // RFC 7306
  atomic_request = 0xA,       // RFC 7306
  atomic_response = 0xB,      // RFC 7306
};

inline constexpr std::uint32_t send_queue = 0;          // QN of the Send class and of Immediate Data
inline constexpr std::uint32_t read_request_queue = 1;  // QN of Read and Atomic Requests
inline constexpr std::uint32_t terminate_queue = 2;
inline constexpr std::uint32_t atomic_response_queue = 3;

inline constexpr std::uint8_t version_bits = 0x40;  // RV = 01
inline constexpr std::uint8_t version_mask = 0xC0;
inline constexpr std::uint8_t opcode_mask = 0x0F;

[[nodiscard]] constexpr std::uint8_t control_octet(opcode op) noexcept {
  return static_cast<std::uint8_t>(version_bits | static_cast<std::uint8_t>(op));
}
/// The low nibble, assigned or not.
[[nodiscard]] constexpr opcode opcode_of(std::uint8_t control) noexcept {
  return static_cast<opcode>(control & opcode_mask);
}
[[nodiscard]] constexpr bool is_send(opcode op) noexcept {
  return op >= opcode::send && op <= opcode::send_solicited_invalidate;
}
[[nodiscard]] constexpr bool invalidates(opcode op) noexcept {
  return op == opcode::send_invalidate || op == opcode::send_solicited_invalidate;
}
[[nodiscard]] constexpr bool is_solicited(opcode op) noexcept {
  return op == opcode::send_solicited || op == opcode::send_solicited_invalidate || op == opcode::immediate_solicited;
}

/// What an opcode is at DDP.
struct opcode_info {
  bool assigned = false;
  bool tagged = false;
  std::uint32_t queue = 0;  // of an untagged one
  std::string_view name;
};
[[nodiscard]] const opcode_info& info(opcode op) noexcept;

}  // namespace iwarp::rdmap
