// Public API.
// A connection whose operations are Asio's: each takes a completion token, so that callbacks, futures (use_future) and
// co_await (use_awaitable) work, with associated executors and allocators as in Asio itself.
// Threading: as Asio's sockets: one caller at a time, with completions going on meanwhile in the executor's threads.
// Time: the limits of connect_options.  I/O: the context's; the executor's context only waits for descriptors.
#pragma once

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/system/error_code.hpp>

#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>

#include "verbs/async_connection_state.hpp"

namespace iwarp::verbs {

/// Owns a queue pair with its completion queue and event channel.
///
/// What holds for every operation:
/// - The handler is never called by the function that begins the operation. It is called exactly once, through its
///   associated executor (the connection's, if it has none), unless the executor's context is destroyed first.
/// - close() and the destructor complete whatever is under way with asio::error::operation_aborted; when they return,
///   no memory of an operation is touched any more. Operations cannot be cancelled one by one.
/// - As many sends and as many receives may be under way as the queue pair was created for; one more completes with
///   errc::queue_full, and one without connection with errc::not_connected.
/// - Elements are copied when the operation begins; the memory they name, which must be registered in the protection
///   domain, belongs to the operation until it completes.
/// - A request that fails completes with its status (`error == status::remote_access`). One that the end of the
///   connection overtook, or that is begun after it, completes with the reason of that end: asio::error::eof when the
///   peer disconnected, asio::error::operation_aborted after async_disconnect(), else the connection's error.
/// Errors are boost::system::error_code, as Asio's tokens want; async_error.hpp compares and converts them.
class async_connection {
 public:
  using executor_type = boost::asio::any_io_executor;

  /// `io`: where handlers run and descriptors are waited for; its context must outlive the connection. With manual
  /// progress it may be the context's own io_context. Queue depths are those of `options`.
  /// Errors: as queue_pair::create(), completion_queue::create(), event_channel::create().
  static result<async_connection> create(const executor_type& io, const context& where, const protection_domain& pd,
                                         const queue_pair_options& options = {}) {
    IWARP_TRY(auto state, detail::async_connection_state::create(io, where, pd, options));
    return async_connection(std::move(state));
  }
  async_connection() = default;  ///< no connection: nothing but assignment may be done
  async_connection(async_connection&&) noexcept = default;
  async_connection& operator=(async_connection&& other) noexcept {
    if (this != &other) {
      close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~async_connection() { close(); }

  // Start-up and end -----------------------------------------------------------------------------------------------

  /// Connects; handler void(error_code). Receives may be begun before, the first time; later on behind it. A connection
  /// that ended can connect again. Errors: as queue_pair::connect(); why the connection did not come about,
  /// asio::error::connection_refused when the peer's program said no (start_event() then has its private data).
  /// `options.private_data` is copied when the operation begins.
  template <class Token>
  auto async_connect(const endpoint& peer, const connect_options& options, Token&& token) {
    return initiate<void(boost::system::error_code)>(
        token, no_arguments{},
        [](state& s, detail::event_operation* operation, const endpoint& to, const connect_options& how) {
          s.connect(operation, to, how);
        },
        peer, options);
  }
  template <class Token>
  auto async_connect(const endpoint& peer, Token&& token) {
    return async_connect(peer, connect_options{}, std::forward<Token>(token));
  }
  /// Takes a Request that an async_listener gave; handler void(error_code), called once the connection is up.
  /// Errors: as queue_pair::accept(); why the connection did not come about.
  template <class Token>
  auto async_accept(const connection_request& request, const accept_options& options, Token&& token) {
    return initiate<void(boost::system::error_code)>(
        token, no_arguments{},
        [](state& s, detail::event_operation* operation, const connection_request& from, const accept_options& how) {
          s.accept(operation, from, how);
        },
        request, options);
  }
  template <class Token>
  auto async_accept(const connection_request& request, Token&& token) {
    return async_accept(request, accept_options{}, std::forward<Token>(token));
  }
  /// Graceful end: what is posted is carried out, then the connection closes; handler void(error_code), called when it
  /// is over. No error after a graceful end, else the reason; not_connected without connection.
  template <class Token>
  auto async_disconnect(Token&& token) {
    return initiate<void(boost::system::error_code)>(
        token, no_arguments{}, [](state& s, detail::event_operation* operation) { s.disconnect(operation); });
  }
  /// Waits until the connection is over, by whomsoever; handler void(error_code) as async_disconnect().
  template <class Token>
  auto async_wait_end(Token&& token) {
    return initiate<void(boost::system::error_code)>(
        token, no_arguments{}, [](state& s, detail::event_operation* operation) { s.wait_end(operation); });
  }
  /// Ends the connection at once; see above. Nothing can be begun afterwards.
  void close() noexcept {
    if (state_) state_->close();
  }

  // Transfers: handler void(error_code, std::size_t), the octets transferred, 0 with an error
  // ---------------------------

  /// Into a receive that the peer posted. `elements`: one sge or a span of them, also in what follows.
  template <class Token>
  auto async_send(std::span<const sge> elements, Token&& token) {
    return async_request({.op = opcode::send, .elements = elements}, std::forward<Token>(token));
  }
  template <class Token>
  auto async_send(const sge& element, Token&& token) {
    return async_send(std::span(&element, 1), std::forward<Token>(token));
  }
  /// Into the peer's memory. Complete when `elements` may be reused, which is before the peer has the octets.
  template <class Token>
  auto async_write(std::span<const sge> elements, const remote_buffer& to, Token&& token) {
    return async_request({.op = opcode::rdma_write, .elements = elements, .remote = to}, std::forward<Token>(token));
  }
  template <class Token>
  auto async_write(const sge& element, const remote_buffer& to, Token&& token) {
    return async_write(std::span(&element, 1), to, std::forward<Token>(token));
  }
  /// From the peer's memory into `element`. Complete when the octets are there.
  template <class Token>
  auto async_read(const sge& element, const remote_buffer& from, Token&& token) {
    return async_request({.op = opcode::rdma_read, .elements = {&element, 1}, .remote = from},
                         std::forward<Token>(token));
  }
  /// Any send request, for what the above do not offer: invalidate, fence, solicited, inline data. `id` and `signaled`
  /// are not looked at.
  template <class Token>
  auto async_request(const send_request& request, Token&& token) {
    std::size_t size = 0;
    for (const auto& element : request.elements) size += element.length;
    return initiate<void(boost::system::error_code, std::size_t)>(
        token, octets_sent{size},
        [](state& s, detail::completion_operation* operation, send_request what, const element_copy& elements) {
          what.elements = {elements.data(), elements.size()};
          s.send(operation, what);
        },
        request, element_copy(request.elements.begin(), request.elements.end()));
  }
  /// Posts a receive; the octets are those of the message. No elements: for messages without payload.
  template <class Token>
  auto async_receive(std::span<const sge> elements, Token&& token) {
    return receive<void(boost::system::error_code, std::size_t)>(elements, octets_received{}, token);
  }
  template <class Token>
  auto async_receive(const sge& element, Token&& token) {
    return async_receive(std::span(&element, 1), std::forward<Token>(token));
  }
  /// The same with handler void(error_code, completion), which also says what the message invalidated.
  template <class Token>
  auto async_receive_message(std::span<const sge> elements, Token&& token) {
    return receive<void(boost::system::error_code, completion)>(elements, whole_completion{}, token);
  }
  template <class Token>
  auto async_receive_message(const sge& element, Token&& token) {
    return async_receive_message(std::span(&element, 1), std::forward<Token>(token));
  }

  // Getters --------------------------------------------------------------------------------------------------------

  [[nodiscard]] executor_type get_executor() const noexcept { return state_->executor(); }
  /// How the latest start-up ended: the peer's private data, addresses, read depths, CRC.
  [[nodiscard]] connection_event start_event() const { return state_->start_event(); }
  /// For its getters. Posting, connecting and resetting belong to this class.
  [[nodiscard]] const queue_pair& pair() const noexcept { return state_->pair(); }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend class async_listener;
  using state = detail::async_connection_state;
  /// Without allocation up to the usual number of elements.
  using element_copy = boost::container::small_vector<sge, 4>;

  // From what the stack tells to the arguments of the handler.
  struct no_arguments {
    using result = connection_event;
    std::tuple<> operator()(const boost::system::error_code&, const connection_event&) const { return {}; }
  };
  struct octets_sent {
    using result = completion;
    std::size_t size;
    std::tuple<std::size_t> operator()(const boost::system::error_code& error, const completion&) const {
      return {error ? 0 : size};
    }
  };
  struct octets_received {
    using result = completion;
    std::tuple<std::size_t> operator()(const boost::system::error_code& error, const completion& what) const {
      return {error ? 0 : what.length};
    }
  };
  struct whole_completion {
    using result = completion;
    std::tuple<completion> operator()(const boost::system::error_code&, const completion& what) const { return {what}; }
  };

  explicit async_connection(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}

  /// `begin(state, operation, args...)` begins the operation, now or when the token wants: `args` are copies.
  template <class Signature, class Token, class Arguments, class Begin, class... Args>
  auto initiate(Token& token, Arguments arguments, Begin begin, const Args&... args) {
    assert(state_);
    return boost::asio::async_initiate<Token, Signature>(
        [s = state_, arguments, begin](auto&& handler, const auto&... copies) {
          using result = typename Arguments::result;
          begin(*s, detail::make_operation<result>(std::move(handler), s->executor(), arguments), copies...);
        },
        token, args...);
  }
  template <class Signature, class Arguments, class Token>
  auto receive(std::span<const sge> elements, Arguments arguments, Token& token) {
    return initiate<Signature>(
        token, arguments,
        [](state& s, detail::completion_operation* operation, const element_copy& copy) {
          s.receive(operation, {copy.data(), copy.size()});
        },
        element_copy(elements.begin(), elements.end()));
  }

  std::shared_ptr<state> state_;
};

}  // namespace iwarp::verbs
