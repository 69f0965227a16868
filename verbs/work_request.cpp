#include "verbs/work_request.hpp"

namespace iwarp::verbs {

std::string_view to_string(status s) noexcept {
  switch (s) {
    case status::success:
      return "success";
    case status::flushed:
      return "flushed: the connection ended before it was carried out";
    case status::local_length:
      return "local length error: the message was longer than the receive";
    case status::local_protection:
      return "local protection error: an element names memory it may not use";
    case status::local_qp_operation:
      return "local operation error: the request cannot be carried out";
    case status::remote_access:
      return "remote access error: the peer refused access to its memory";
    case status::remote_operation:
      return "remote operation error: the peer could not carry it out";
    case status::remote_invalid_request:
      return "remote invalid request: the peer found it invalid";
    case status::bad_response:
      return "bad response: the peer's Read Response does not match the Read";
  }
  return "?";
}

std::string_view to_string(completion_kind kind) noexcept {
  switch (kind) {
    case completion_kind::send:
      return "send";
    case completion_kind::rdma_write:
      return "rdma write";
    case completion_kind::rdma_read:
      return "rdma read";
    case completion_kind::local_invalidate:
      return "local invalidate";
    case completion_kind::receive:
      return "receive";
  }
  return "?";
}

}  // namespace iwarp::verbs
