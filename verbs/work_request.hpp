// Public API.
// What is posted to queue pairs and what completion queues give back (VERBS s8, s9; names as in libibverbs).
// Threading: value types.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "rdmap/work_request.hpp"

namespace iwarp::verbs {

/// Scatter/gather element: {address, length in octets, local key of the region}.
using sge = rdmap::sge;

enum class opcode : std::uint8_t {
  send,                  ///< into a receive that the peer posted
  send_with_invalidate,  ///< likewise, and the peer's stack invalidates `invalidate` before it completes the receive
  rdma_write,            ///< into the peer's memory at `remote`
  rdma_read,             ///< from the peer's memory at `remote`; at most one element
  local_invalidate,      ///< makes the own STag `invalidate` invalid, before any later request is begun
};

/// Memory of the peer, as it advertised it.
struct remote_buffer {
  stag key;
  std::uint64_t offset = 0;  ///< address in the peer, or offset into a zero-based region
};

struct send_request {
  std::uint64_t id = 0;  ///< comes back in the completion
  verbs::opcode op = opcode::send;
  bool signaled = true;      ///< false: a completion only when it fails, or when the queue pair signals all
  bool solicited = false;    ///< Sends: wakes a peer that waits for solicited completions only
  bool fence = false;        ///< begins only when all earlier Reads have completed
  bool inline_data = false;  ///< Sends and Writes: octets are copied now, keys are not looked at
  std::span<const sge> elements = {};
  remote_buffer remote = {};
  stag invalidate = {};
};

struct receive_request {
  std::uint64_t id = 0;
  std::span<const sge> elements = {};
};

/// How a request ended. Names and meaning: rdmap/work_request.hpp.
using status = rdmap::wr_status;
[[nodiscard]] std::string_view to_string(status s) noexcept;

enum class completion_kind : std::uint8_t { send, rdma_write, rdma_read, local_invalidate, receive };
[[nodiscard]] std::string_view to_string(completion_kind kind) noexcept;

/// With a status other than success only id, status and qp_number mean anything.
struct completion {
  std::uint64_t id = 0;
  verbs::status status = status::success;
  completion_kind kind = completion_kind::send;
  bool solicited = false;        ///< receive: the peer asked for a solicited event
  bool with_invalidate = false;  ///< receive: `invalidated` was invalidated by the peer's word
  std::uint32_t length = 0;      ///< receive, rdma_read: octets
  std::uint32_t qp_number = 0;
  stag invalidated = {};
};

// Limits of this stack.
inline constexpr std::uint32_t max_queue_depth = 1u << 20;
inline constexpr std::uint32_t max_sge = 64;
inline constexpr std::uint32_t max_inline = 4096;
inline constexpr std::uint16_t max_read_depth = 0x3FFE;

}  // namespace iwarp::verbs
