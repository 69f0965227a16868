// Internal to tcp_glue and verbs.
// A connection of the kernel's TCP as a transport: a non-blocking socket, with Asio for readiness alone.
// Threading: as transport.hpp; handlers run on the executor of the socket.  Time: none.  I/O: non-blocking.
#pragma once

#include "tcp_glue/transport.hpp"

namespace iwarp::tcp_glue {

class kernel_transport final : public transport {
 public:
  /// Takes a connected socket and sets it up: non-blocking, close-on-exec, TCP_NODELAY (RFC 5044 s5.1 wants segments to
  /// begin with FPDUs), keep-alive (a silent dead peer is found in the end). Buffer sizes stay alone: setting them
  /// switches the kernel's autotuning off. On error the socket is closed.
  /// Errors: errno of fcntl(2), ioctl(2), setsockopt(2).
  static result<std::unique_ptr<kernel_transport>> make(boost::asio::ip::tcp::socket socket);

  io_result read(mutable_bytes into) noexcept override;
  io_result write(std::span<const gather_piece> pieces) noexcept override;
  void shutdown_write() noexcept override;
  void close() noexcept override;
  void abort() noexcept override;
  void wait_readable(std::shared_ptr<readiness_handler> handler) override;
  void wait_writable(std::shared_ptr<readiness_handler> handler) override;
  void wait_lost(std::shared_ptr<readiness_handler> handler) override;
  void cancel() noexcept override;
  void keep_alive(std::chrono::seconds limit) noexcept override;
  [[nodiscard]] std::optional<std::chrono::milliseconds> unanswered() const noexcept override;
  [[nodiscard]] std::uint32_t emss() const noexcept override;
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept override;
  [[nodiscard]] result<endpoint> remote_endpoint() const noexcept override;

  /// The descriptor, to look at and to set further options on; -1 once closed. Stays owned here.
  [[nodiscard]] int native_handle() noexcept { return socket_.native_handle(); }

 private:
  explicit kernel_transport(boost::asio::ip::tcp::socket socket) noexcept;

  // Asio asks for a mutable socket to name its descriptor, also where nothing of it changes.
  mutable boost::asio::ip::tcp::socket socket_;
};

}  // namespace iwarp::tcp_glue
