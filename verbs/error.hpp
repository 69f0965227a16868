// Public API.
// Errors of the verbs layer, category "iwarp.verbs": what a caller did wrong, or what became of a connection. Errors of
// the layers below keep their own categories.
// Threading: free functions.  Time: none.  I/O: none.
#pragma once

#include <system_error>

namespace iwarp::verbs {

enum class errc {
  invalid_argument = 1,  ///< an argument is out of its range; the message of the call's documentation names it
  invalid_depth,         ///< a queue depth is 0 or above max_queue_depth
  invalid_sge_count,     ///< more elements than the queue was created for
  invalid_length,        ///< message of 2^32 octets or more, or an inline payload above max_inline
  invalid_access,        ///< access flags contradict each other (remote write or atomic without local write)
  invalid_memory,        ///< the memory to register is not mapped, or not writable although local write is asked for
  invalid_private_data,  ///< private data above 512 octets (508 with MPA revision 2)
  invalid_read_depth,    ///< IRD or ORD above max_read_depth
  invalid_revision,      ///< MPA revision other than 1 or 2, or peer-to-peer with revision 1
  invalid_opcode,        ///< no such operation
  invalid_key,           ///< STag that does not belong to this protection domain
  queue_full,            ///< as many requests are outstanding as the queue was created for
  not_connected,         ///< sends can be posted only on a connected queue pair, or one in error, which flushes them
  already_connected,     ///< the queue pair has a connection; reset() it first
  has_shared_receive_queue,  ///< receives go to the shared receive queue
  no_such_request,           ///< the connection request was answered, or its peer has gone
  wrong_context,             ///< objects of two contexts cannot be joined
  wrong_state,               ///< not possible in the state the queue pair is in
  peer_unreachable,          ///< TCP could not be opened in time
  address_in_use,            ///< somebody else listens there
  timed_out,                 ///< the wait ended without the event
  cq_overflow,               ///< a completion queue was full when a completion came
  too_many,                  ///< a limit of this context is reached (regions)
  not_automatic,             ///< this call waits for the context's own thread, which manual progress does not have
  recording_failed,          ///< the file to record traffic to cannot be made, or somebody records to it already
};

const std::error_category& error_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), error_category()};
}

}  // namespace iwarp::verbs

template <>
struct std::is_error_code_enum<iwarp::verbs::errc> : std::true_type {};
