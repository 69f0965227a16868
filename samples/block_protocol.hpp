// What block server and block client say to each other: requests and replies by Send, blocks by the server's RDMA.
// All numbers are big-endian.
#pragma once

#include <boost/endian/buffers.hpp>
#include <cstdint>

namespace block {

using boost::endian::big_uint32_buf_t;
using boost::endian::big_uint64_buf_t;

enum class operation : std::uint32_t {
  info = 0,   ///< how large is the device?
  read = 1,   ///< the server writes blocks into the client's memory (RDMA Write)
  write = 2,  ///< the server reads them from there (RDMA Read)
};

enum class status : std::uint32_t { ok = 0, bad_message = 1, bad_operation = 2, bad_range = 3 };

/// Client to server. key and offset: where in the client's memory the blocks go to, or come from.
struct request {
  big_uint32_buf_t op;
  big_uint32_buf_t count;  ///< blocks
  big_uint64_buf_t first;  ///< block number
  big_uint64_buf_t offset;
  big_uint32_buf_t key;
  big_uint32_buf_t tag;  ///< comes back in the reply
};
static_assert(sizeof(request) == 32);

/// Server to client, when the blocks are where they belong.
struct reply {
  big_uint32_buf_t result;
  big_uint32_buf_t tag;
  big_uint32_buf_t block_size;  ///< octets
  big_uint32_buf_t max_count;   ///< blocks of one request
  big_uint64_buf_t blocks;      ///< of the device
};
static_assert(sizeof(reply) == 24);

}  // namespace block
