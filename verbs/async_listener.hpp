// Public API.
// A listener whose operations are Asio's (see verbs/async_connection.hpp).
// Threading: as Asio's sockets: one caller at a time, with completions going on meanwhile in the executor's threads.
// Time: startup_timeout of the options.  I/O: the context's; the executor's context only waits for a descriptor.
#pragma once

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/compose.hpp>

#include <memory>
#include <tuple>

#include "verbs/async_connection.hpp"
#include "verbs/async_listener_state.hpp"

namespace iwarp::verbs {

/// Owns a port. close() and the destructor free it and complete what is under way with asio::error::operation_aborted;
/// connections that were accepted go on.
class async_listener {
 public:
  using executor_type = boost::asio::any_io_executor;

  /// `io`: where handlers run and the descriptor is waited for; its context must outlive the listener.
  /// Errors: as listener::create().
  static result<async_listener> create(const executor_type& io, const context& where, const endpoint& at,
                                       const listen_options& options = {}) {
    IWARP_TRY(auto state, detail::async_listener_state::create(io, where, at, options));
    return async_listener(std::move(state));
  }
  async_listener() = default;  ///< no listener: nothing but assignment may be done
  async_listener(async_listener&&) noexcept = default;
  async_listener& operator=(async_listener&& other) noexcept {
    if (this != &other) {
      close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~async_listener() { close(); }

  /// The next peer that wants to connect: handler void(error_code, connection_event). The event has the peer's private
  /// data and addresses, and the request for async_connection::async_accept() or reject(); if its last copy goes
  /// unanswered it is rejected.
  template <class Token>
  auto async_next_request(Token&& token) {
    assert(state_);
    return boost::asio::async_initiate<Token, void(boost::system::error_code, connection_event)>(
        [s = state_](auto&& handler) {
          s->next_request(detail::make_operation<connection_event>(std::move(handler), s->executor(), whole_event{}));
        },
        token);
  }

  /// The next peer, accepted: handler void(error_code, async_connection), called when the connection is up. The
  /// connection has this listener's executor, a queue pair made of `pd` and `pair`. An error belongs to that one peer
  /// unless it is operation_aborted: accept the next.
  template <class Token>
  auto async_accept(const protection_domain& pd, const queue_pair_options& pair, const accept_options& options,
                    Token&& token) {
    assert(state_);
    return boost::asio::async_compose<Token, void(boost::system::error_code, async_connection)>(
        acceptance{state_, pd, pair, options}, token, state_->executor());
  }
  template <class Token>
  auto async_accept(const protection_domain& pd, Token&& token) {
    return async_accept(pd, queue_pair_options{}, accept_options{}, std::forward<Token>(token));
  }

  void close() noexcept {
    if (state_) state_->close();
  }
  /// Address and port in use; also after close().
  [[nodiscard]] endpoint local() const { return state_->local(); }
  [[nodiscard]] executor_type get_executor() const noexcept { return state_->executor(); }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  using state = detail::async_listener_state;
  struct whole_event {
    std::tuple<connection_event> operator()(const boost::system::error_code&, connection_event& event) const {
      return {std::move(event)};
    }
  };
  /// Request, then connection.
  struct acceptance {
    std::shared_ptr<state> from;
    protection_domain pd;
    queue_pair_options pair;
    accept_options options;
    async_connection made = {};

    // `self` holds this object, so what is needed after std::move(self) is copied first.
    template <class Self>
    void operator()(Self& self) {
      const auto listener = from;
      listener->next_request(
          detail::make_operation<connection_event>(std::move(self), listener->executor(), whole_event{}));
    }
    template <class Self>
    void operator()(Self& self, const boost::system::error_code& error, const connection_event& event) {
      if (error) return self.complete(error, async_connection());
      auto connection = async_connection::create(from->executor(), from->where(), pd, pair);
      if (!connection) return self.complete(to_asio(connection.error()), async_connection());
      made = std::move(*connection);
      const auto accepting = made.state_;
      const auto how = options;
      accepting->accept(detail::make_operation<connection_event>(std::move(self), accepting->executor(),
                                                                 async_connection::no_arguments{}),
                        event.request, how);
    }
    template <class Self>
    void operator()(Self& self, const boost::system::error_code& error) {
      self.complete(error, error ? async_connection() : std::move(made));
    }
  };

  explicit async_listener(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}

  std::shared_ptr<state> state_;
};

}  // namespace iwarp::verbs
