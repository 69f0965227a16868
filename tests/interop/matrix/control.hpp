// Part of the interop matrix.
// The control connection: one JSON text a line, a question from the driver and an answer from the end.
// Threading: one thread.  Time: every answer has a limit.  I/O: a stream socket.
#pragma once

#include <string>

#include "tests/interop/matrix/end.hpp"

namespace iwarp::interop {

/// Owns a connected stream socket.
class line_socket {
 public:
  explicit line_socket(int descriptor) noexcept : descriptor_(descriptor) {}
  line_socket(line_socket&& other) noexcept;
  line_socket& operator=(line_socket&&) = delete;
  ~line_socket();

  void write_line(const std::string& line);
  /// Throws failure when no line comes in time or the peer has gone.
  std::string read_line(milliseconds limit);
  /// The peer has gone: false. Waits without limit otherwise.
  bool wait_readable();
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
  std::string received_;
};

/// Carries out what the driver says until it goes.
void serve(end& here, line_socket& driver);

/// The driver's side of an end.
class remote_end {
 public:
  /// `name`: for messages.
  remote_end(line_socket socket, std::string name);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const interop::about& description() const noexcept { return about_; }

  region add_region(std::uint64_t length, const std::string& rights, bool stranger = false);
  void remove_region(const region& which);
  bool region_valid(const region& which);
  void fill(const layout& where, std::uint64_t seed);
  void poison(const region& which, std::uint64_t at, std::uint64_t length);
  std::string verify(const layout& where, std::uint64_t seed, std::uint64_t poisoned_at, std::uint64_t poisoned_length);

  std::uint16_t listen(const std::string& address, const connection_wishes& wishes);
  void open(const queue_options& queues, const std::string& address, std::uint16_t port);
  void connect(const connection_wishes& wishes);
  void open_request(const queue_options& queues);
  void accept(const connection_wishes& wishes);
  void reject(const std::string& private_data);
  event wait_event(milliseconds limit = milliseconds(5000));
  std::vector<completion> wait_completions(std::size_t count, milliseconds limit = milliseconds(5000));
  std::vector<std::string> asynchronous_events();
  std::string post_send(const work& what);
  std::string post_receive(const work& what);
  void disconnect();
  void abort();
  void close();
  /// The end's process dies at once, by SIGKILL. Nothing more can be asked of it.
  void kill();

 private:
  nlohmann::json ask(const char* what, nlohmann::json with = nullptr, milliseconds limit = milliseconds(0));

  line_socket socket_;
  std::string name_;
  interop::about about_;
};

}  // namespace iwarp::interop
