// Public API.
// Events of connections and queues, in order, by polling, waiting or a descriptor (rdma_event_channel of librdmacm).
// Threading: every function from any thread.  Time: wait() bounds.  I/O: wait() blocks its caller.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "rdmap/terminate.hpp"
#include "tcp_glue/endpoint.hpp"
#include "verbs/context.hpp"

namespace iwarp::verbs {

using tcp_glue::endpoint;

namespace detail {
class event_channel_state;
class connection;
}  // namespace detail

enum class event_kind : std::uint8_t {
  connect_request,  ///< a listener has a peer's Request: accept() or reject() event.request
  established,      ///< the queue pair is connected
  rejected,         ///< the peer's ULP said no: private_data holds what it had to say
  unreachable,      ///< TCP could not be opened: reason says why
  connect_error,    ///< TCP was there, MPA start-up failed: reason says why
  disconnected,     ///< an established connection ended: reason is empty after a graceful end
  receive_limit,    ///< a shared receive queue fell below its armed limit
};
[[nodiscard]] std::string_view to_string(event_kind kind) noexcept;

/// A peer's Request that waits for its answer. Shared handle; if every copy goes unanswered it is rejected.
class connection_request {
 public:
  connection_request() = default;
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Internal.
  explicit connection_request(std::shared_ptr<void> handle) noexcept : handle_(std::move(handle)) {}
  [[nodiscard]] const std::shared_ptr<void>& handle() const noexcept { return handle_; }

 private:
  std::shared_ptr<void> handle_;
};

struct connection_event {
  event_kind kind = event_kind::established;
  std::uint64_t user_data = 0;  ///< of the queue pair, listener or shared receive queue
  std::uint32_t qp_number = 0;  ///< 0 for connect_request and receive_limit
  std::error_code reason = {};
  std::error_code tcp_error = {};            ///< reason tcp_lost: what TCP said (errno), if anything
  std::string reason_text = {};              ///< the reason in words, with the Terminate's where there was one
  std::vector<std::byte> private_data = {};  ///< the peer's
  std::uint16_t peer_ird = 0;                ///< Reads the peer can hold for us; meaningful with MPA revision 2
  std::uint16_t peer_ord = 0;                ///< Reads the peer wants to have outstanding
  std::uint8_t mpa_revision = 0;
  bool crc = false;      ///< established: CRC32c is in force
  bool markers = false;  ///< established: the peer inserts markers, as this side asked
  std::optional<rdmap::terminate_message> sent_terminate = {};
  std::optional<rdmap::terminate_message> received_terminate = {};
  endpoint local = {};
  endpoint remote = {};
  connection_request request = {};
};

/// Shared handle.
class event_channel {
 public:
  /// Errors: errno of eventfd(2).
  static result<event_channel> create(const context& where);

  /// The oldest event, if there is one.
  std::optional<connection_event> poll();
  /// Waits for an event. With manual progress it runs the io_context meanwhile, so no other thread may. Error:
  /// timed_out.
  result<connection_event> wait(std::chrono::nanoseconds limit);
  /// An eventfd: readable while events wait. For epoll, select, Asio; never closed by the caller.
  [[nodiscard]] int descriptor() const noexcept;

  /// Internal.
  [[nodiscard]] const std::shared_ptr<detail::event_channel_state>& state() const noexcept { return state_; }

 private:
  explicit event_channel(std::shared_ptr<detail::event_channel_state> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<detail::event_channel_state> state_;
};

}  // namespace iwarp::verbs
