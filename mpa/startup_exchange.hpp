// Internal to rdmap, mpa.
// One side of MPA start-up as a state machine over octets: collects the peer's frame, holds the own one until TCP took
// it, and says what was agreed (RFC 5044 s7.1.2, RFC 6581). Timers are the caller's.
// Threading: not thread-safe; one caller at a time.  Time: none.  I/O: none.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "mpa/negotiation.hpp"
#include "mpa/startup_frame.hpp"

namespace iwarp::mpa {

class startup_exchange {
 public:
  enum class state : std::uint8_t {
    wait_reply,    ///< initiator: Request queued, Reply not complete
    wait_request,  ///< responder: Request not complete
    deciding,      ///< responder: the ULP has the Request and must accept() or reject()
    agreed,        ///< full operation may begin once tx() is empty
    rejected,      ///< by the peer (initiator) or by us (responder; the Reply may still be in tx())
    failed,        ///< malformed frame or no agreement; error() says what
  };

  /// Initiator: queues the Request. Preconditions as make_request().
  void initiate(const startup_options& own, const_bytes private_data) noexcept;
  /// Responder: waits for the Request.
  void respond(const startup_options& own) noexcept;

  /// Takes octets of the peer's frame; returns how many, never one behind the Reply. Errors: iwarp.mpa, after which the
  /// state is failed. Octets behind a Request are an error (unexpected_octets): the initiator must wait (s7.1.2 rule
  /// 3).
  result<std::size_t> consume(const_bytes in) noexcept;

  /// Responder, in `deciding`: queues the accepting Reply. `own` may differ from respond()'s in IRD, ORD.
  void accept(const startup_options& own, const_bytes private_data) noexcept;
  /// Responder, in `deciding`: queues the rejecting Reply.
  void reject(const_bytes private_data) noexcept;

  /// Own octets that TCP has not taken yet.
  [[nodiscard]] const_bytes tx() const noexcept { return {out_.data() + out_sent_, out_size_ - out_sent_}; }
  void tx_advance(std::size_t n) noexcept { out_sent_ += n; }

  [[nodiscard]] state current() const noexcept { return state_; }
  [[nodiscard]] bool initiator() const noexcept { return initiator_; }
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  /// The peer's frame; from `deciding`, `agreed` or `rejected` on.
  [[nodiscard]] const startup_frame& peer_frame() const noexcept { return peer_; }
  [[nodiscard]] bool peer_frame_begun() const noexcept { return reader_.begun(); }
  [[nodiscard]] const startup_options& options() const noexcept { return own_; }
  /// From `agreed` on; after insufficient_ird and no_matching_rtr good enough to frame a Terminate.
  [[nodiscard]] const negotiated& agreement() const noexcept { return agreed_; }

 private:
  result<> frame_complete() noexcept;
  void queue(const startup_frame& frame) noexcept;

  state state_ = state::wait_request;
  bool initiator_ = false;
  startup_options own_;
  startup_reader reader_{frame_kind::request};
  startup_frame peer_;
  negotiated agreed_;
  std::error_code error_;
  std::array<std::byte, startup_fixed_size + max_private_data> out_;
  std::size_t out_size_ = 0;
  std::size_t out_sent_ = 0;
};

}  // namespace iwarp::mpa
