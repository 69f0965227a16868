// Internal to tcp_glue and verbs.
// What this stack asks of a TCP connection, whichever TCP it is: octets in, gathered octets out, EMSS, readiness and
// the three ways to end. Implementations: kernel_transport, memory_link. Threading: not thread-safe; one caller at a
// time (the lock of the progress domain). Handlers run on the transport's executor, outside that lock.  Time: none.
// I/O: never blocks.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "tcp_glue/endpoint.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

namespace iwarp::tcp_glue {

/// EMSS taken for a TCP that does not know its own yet (RFC 9293 s3.7.1).
inline constexpr std::uint32_t default_emss = 536;

/// Told when a transport becomes ready. Held by shared_ptr while a wait is pending, so it may outlive its connection.
class readiness_handler {
 public:
  /// Octets, the peer's FIN or an error can be read now; or only perhaps, so read() may still say would_block.
  /// `ec` is not set, or operation_canceled when the wait was given up.
  virtual void on_readable(std::error_code ec) noexcept = 0;
  /// Octets can be written now, or only perhaps; a lost connection counts as ready. `ec` as above.
  virtual void on_writable(std::error_code ec) noexcept = 0;
  /// The connection was lost while nobody read or wrote: `reason` is its error. operation_canceled when given up.
  virtual void on_lost(std::error_code reason) noexcept { (void)reason; }

 protected:
  ~readiness_handler() = default;
};

class transport {
 public:
  enum class io_state : std::uint8_t {
    ok,             ///< `size` octets were moved, at least one
    would_block,    ///< nothing to read now, or no room to write now
    end_of_stream,  ///< read(): the peer sent FIN and all before it has been read
    failed,         ///< the connection is lost; `error` says why
  };
  struct io_result {
    std::size_t size = 0;
    io_state state = io_state::ok;
    std::error_code error = {};
  };

  virtual ~transport() = default;

  /// Stores up to into.size() octets, at least one octet long. Fewer than asked: nothing more was there.
  virtual io_result read(mutable_bytes into) noexcept = 0;
  /// Sends octets in order; may take fewer than offered. At least one piece must hold an octet; the pieces are not
  /// needed after the call.
  virtual io_result write(std::span<const gather_piece> pieces) noexcept = 0;

  /// Sends FIN behind all that was written. Reading goes on.
  virtual void shutdown_write() noexcept = 0;
  /// Graceful end: what was written is still delivered, then FIN. The transport is of no more use. When octets of the
  /// peer are unread, or come later, the peer gets a reset, which may destroy what it has not read yet.
  virtual void close() noexcept = 0;
  /// Ends now with RST and drops what is still queued.
  virtual void abort() noexcept = 0;

  /// One-shot: calls handler->on_readable() once, later, on the executor. At most one such wait at a time.
  virtual void wait_readable(std::shared_ptr<readiness_handler> handler) = 0;
  /// One-shot: calls handler->on_writable() once, later, on the executor. At most one such wait at a time.
  virtual void wait_writable(std::shared_ptr<readiness_handler> handler) = 0;
  /// One-shot: calls handler->on_lost() once the connection is lost, later, on the executor. For an engine that takes
  /// no octets now, which no read would tell. At most one such wait at a time. Without support: never.
  virtual void wait_lost(std::shared_ptr<readiness_handler> handler) { (void)handler; }
  /// Gives up pending waits; their handlers get operation_canceled. close(), abort() and the destructor do the same.
  virtual void cancel() noexcept = 0;

  /// Has TCP find by itself a peer that is silent while there is nothing to send: after about `limit`, 1 s or more, the
  /// connection is lost with timed_out. Without support: as TCP has it.
  virtual void keep_alive(std::chrono::seconds limit) noexcept { (void)limit; }
  /// How long ago the peer's TCP was heard of last, while something of this side waits for its answer: octets, or a
  /// probe of its closed window. Nothing waits, or TCP cannot say: nullopt.
  [[nodiscard]] virtual std::optional<std::chrono::milliseconds> unanswered() const noexcept { return std::nullopt; }

  /// Effective maximum segment size for sending now, in octets; never 0.
  [[nodiscard]] virtual std::uint32_t emss() const noexcept = 0;
  /// Errors: errno of getsockname(2) and getpeername(2); bad_file_descriptor after close() and abort().
  [[nodiscard]] virtual result<endpoint> local_endpoint() const noexcept = 0;
  [[nodiscard]] virtual result<endpoint> remote_endpoint() const noexcept = 0;

  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

 protected:
  transport() = default;
};

}  // namespace iwarp::tcp_glue
