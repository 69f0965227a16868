#include "rdmap/opcode.hpp"

#include <array>

namespace iwarp::rdmap {
namespace {

// By opcode (RFC 5040 s4.2, RFC 7306 s4). 0xF is set aside for experiments (RFC 6580 s3).
constexpr std::array<opcode_info, 16> table{{
    {true, true, 0, "RDMA Write"},
    {true, false, read_request_queue, "RDMA Read Request"},
    {true, true, 0, "RDMA Read Response"},
    {true, false, send_queue, "Send"},
    {true, false, send_queue, "Send with Invalidate"},
    {true, false, send_queue, "Send with Solicited Event"},
    {true, false, send_queue, "Send with Solicited Event and Invalidate"},
    {true, false, terminate_queue, "Terminate"},
    {true, false, send_queue, "Immediate Data"},
    {true, false, send_queue, "Immediate Data with Solicited Event"},
    {true, false, read_request_queue, "Atomic Request"},
    {true, false, atomic_response_queue, "Atomic Response"},
    {false, false, 0, "unassigned opcode 0xC"},
    {false, false, 0, "unassigned opcode 0xD"},
    {false, false, 0, "unassigned opcode 0xE"},
    {false, false, 0, "experimental opcode 0xF"},
}};

}  // namespace

const opcode_info& info(opcode op) noexcept { return table[static_cast<std::uint8_t>(op) & opcode_mask]; }

}  // namespace iwarp::rdmap
