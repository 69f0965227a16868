// Public API.
// Queue pairs: posting work, connecting, states (VERBS s6, s8; ibv_qp and rdma_cm_id in one).
// Threading: every function from any thread, except that nothing may be called during or after destruction.
// Time: time limits of connect_options, on the steady clock.  I/O: posting sends at once, on the caller's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "rdmap/terminate.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/memory.hpp"
#include "verbs/shared_receive_queue.hpp"
#include "verbs/work_request.hpp"

namespace iwarp::verbs {

namespace detail {
class queue_pair_state;
}

/// VERBS s6.2; in libibverbs' words: INIT, INIT on its way to RTS, RTS, SQD, SQE, ERR.
enum class qp_state : std::uint8_t {
  idle,        ///< no connection; receives may be posted
  connecting,  ///< TCP or MPA start-up is under way
  rts,         ///< connected
  closing,     ///< disconnect() was called: queued work is sent, then the connection closes
  terminate,   ///< an error ended the stream; the Terminate is on its way
  error,       ///< over; whatever is posted is flushed
};
[[nodiscard]] std::string_view to_string(qp_state state) noexcept;

struct queue_pair_options {
  std::uint32_t max_send_requests = 128;     ///< 1..max_queue_depth
  std::uint32_t max_receive_requests = 128;  ///< 0..max_queue_depth; ignored with a shared receive queue
  std::uint32_t max_send_sge = 4;            ///< 1..max_sge
  std::uint32_t max_receive_sge = 4;         ///< 1..max_sge
  std::uint32_t max_inline = 256;            ///< octets, 0..verbs::max_inline
  bool signal_all = false;                   ///< every send request completes visibly
  bool remote_read = true;                   ///< the peer may read, where the region allows it
  bool remote_write = true;                  ///< the peer may write, where the region allows it
  std::uint64_t user_data = 0;               ///< comes back in events
};

/// What an arriving Send meets when no receive is posted.
enum class no_receive : std::uint8_t {
  hold,       ///< the peer waits, by TCP's window, until a receive is posted
  terminate,  ///< the connection ends with Terminate 1/2/02, as RFC 5041 has it
};

/// For either side of a connection.
struct connection_options {
  bool crc = true;         ///< ask for CRC32c. It is in force when either side asks (RFC 5044 s4.4)
  bool markers = false;    ///< ask the peer to insert markers. Linux siw refuses such connections
  std::uint16_t ird = 16;  ///< Reads of the peer that may be outstanding, 0..max_read_depth
  std::uint16_t ord = 16;  ///< own Reads that may be outstanding, 0..max_read_depth; lowered to what the peer holds
  no_receive shortage = no_receive::hold;
  std::uint32_t max_ulpdu = 64768;  ///< cap on the ULPDUs sent, octets, 128..64768; the TCP segment counts as well
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(5);     ///< disconnect() until the peer's FIN
  std::chrono::nanoseconds fpdu_timeout = std::chrono::seconds(30);     ///< an FPDU once begun must end; 0: no limit
  std::chrono::nanoseconds startup_timeout = std::chrono::seconds(10);  ///< connect: the Reply; listener: the Request
};

struct connect_options : connection_options {
  const_bytes private_data = {};  ///< copied; 0..508 octets, 0..512 with mpa_revision 1
  std::uint8_t mpa_revision = 2;
  bool fall_back_to_revision_1 = true;  ///< once, when the peer turns out not to know revision 2
  /// With `markers`: tries once more without them when the peer rejects the Request without a word, as Linux siw does;
  /// `markers` of the event established tells the outcome. Off: event rejected, reason mpa::errc::markers_refused.
  bool fall_back_without_markers = false;
  /// Negotiates that the stack sends a ready-to-receive message at once, so that the responder may send first (RFC 6581
  /// s9.2); revision 2 alone. Linux siw has been seen to bring its whole host down in this mode.
  bool peer_to_peer = false;
  /// A responder may not send before the initiator did (RFC 5044 s7.1.2). When it has been silent for so long the stack
  /// sends a zero-length Write, once, which shows nowhere but lets the responder go on; it also wakes a Linux siw that
  /// overlooked what came right behind its Reply; 0: never.
  std::chrono::nanoseconds rtr_delay = std::chrono::milliseconds(20);
  std::optional<endpoint> local = {};  ///< source address
  std::chrono::nanoseconds tcp_timeout = std::chrono::seconds(10);
};

struct accept_options {
  /// Copied; 0..508 octets, 0..512 towards a revision 1 peer. A Linux siw initiator takes 252: its kernel panics at
  /// more.
  const_bytes private_data = {};
  std::optional<std::uint16_t> ird = {};  ///< instead of the listener's
  std::optional<std::uint16_t> ord = {};
};

struct queue_pair_counters {
  std::uint64_t fpdus_in = 0, fpdus_out = 0;
  std::uint64_t octets_in = 0, octets_out = 0;  ///< of the TCP stream
  std::uint64_t receive_holds = 0;              ///< times the peer was held because no receive was posted
};

/// Owns the queue pair. The destructor ends the connection: gracefully if disconnect() had nothing left to send, else
/// with a reset. When it returns no posted memory is touched, its completions are gone from the queues, and no event of
/// it will come; those in the channel already stay there.
class queue_pair {
 public:
  /// Events go to `channel`. Errors: invalid_depth, invalid_sge_count, invalid_length, wrong_context.
  static result<queue_pair> create(const protection_domain& pd, const completion_queue& send_cq,
                                   const completion_queue& receive_cq, const event_channel& channel,
                                   const queue_pair_options& options = {},
                                   const std::optional<shared_receive_queue>& shared = {});
  queue_pair() = default;  ///< no queue pair
  queue_pair(queue_pair&&) noexcept = default;
  queue_pair& operator=(queue_pair&& other) noexcept;
  ~queue_pair();

  /// Posts and sends. Errors, nothing is posted then: not_connected, queue_full, invalid_sge_count, invalid_length,
  /// invalid_opcode. What turns out wrong later (a bad key) is a completion with an error.
  result<> post_send(const send_request& request);
  /// Posts in order until the first that fails; `posted` says how many went in. One turn for all: the fast way.
  result<> post_send(std::span<const send_request> requests, std::size_t& posted);
  /// Posts all, or none when any of them fails.
  result<> post_send_all(std::span<const send_request> requests);
  /// Errors: has_shared_receive_queue, queue_full, invalid_sge_count, invalid_length.
  result<> post_receive(const receive_request& request);
  result<> post_receive(std::span<const receive_request> requests, std::size_t& posted);

  /// Opens a connection; the outcome is one event: established, rejected, unreachable or connect_error.
  /// Errors: already_connected, wrong_state (reset() a queue pair in error first), invalid_private_data,
  /// invalid_read_depth, invalid_revision, invalid_argument.
  result<> connect(const endpoint& peer, const connect_options& options = {});
  /// Takes a peer's Request; the outcome is one event: established or connect_error. A caller's mistake leaves the
  /// Request open for another try. Errors: as connect(), and no_such_request, wrong_context.
  result<> accept(const connection_request& request, const accept_options& options = {});
  /// Graceful: everything posted is carried out, then the connection closes; event disconnected. No error when it is
  /// closed already. Error: not_connected while there is no connection at all.
  result<> disconnect();
  /// Modify QP to Error, in every state: resets the connection, no Terminate; what is outstanding is flushed. A
  /// connect() under way ends with event connect_error, a connection with disconnected, both with reason
  /// connection_aborted.
  void abort() noexcept;
  /// From error back to idle. Error: wrong_state unless in error or idle.
  result<> reset();

  [[nodiscard]] qp_state state() const noexcept;
  [[nodiscard]] std::uint32_t number() const noexcept;  ///< unique in the context, 1..2^24-1
  [[nodiscard]] std::optional<rdmap::terminate_message> sent_terminate() const;
  [[nodiscard]] std::optional<rdmap::terminate_message> received_terminate() const;
  [[nodiscard]] queue_pair_counters counters() const;
  /// Own read depths now in force; 0 without a connection.
  [[nodiscard]] std::uint16_t ird() const;
  [[nodiscard]] std::uint16_t ord() const;
  /// A peer's message waits because no receive is posted.
  [[nodiscard]] bool held() const;

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::queue_pair_state>& internal() const noexcept { return state_; }

 private:
  explicit queue_pair(std::shared_ptr<detail::queue_pair_state> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::queue_pair_state> state_;
};

}  // namespace iwarp::verbs
