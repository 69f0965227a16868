// Part of the interop matrix.
// One end of the matrix: an RDMA library behind a small interface. It has one connection at a time and does what the
// driver says. Every wait has a limit.
// Threading: one thread.  Time: steady clock.  I/O: the library's.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tests/interop/matrix/messages.hpp"

namespace iwarp::interop {

/// What an end could not do, in words; the driver makes a failed cell of it.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using milliseconds = std::chrono::milliseconds;

class end {
 public:
  virtual ~end() = default;
  virtual interop::about describe() = 0;

  /// `rights`: letters of "w" remote write, "r" remote read; local write is always there. `stranger`: of a protection
  /// domain that the connections are not in.
  virtual region add_region(std::uint64_t length, const std::string& rights, bool stranger) = 0;
  virtual void remove_region(std::uint32_t index) = 0;
  /// False when an invalidate is known to have come.
  virtual bool region_valid(std::uint32_t index) = 0;
  virtual mutable_bytes memory(std::uint32_t index) = 0;

  /// Port 0 of an address; the port. Replaces an earlier listener.
  virtual std::uint16_t listen(const std::string& address, const connection_wishes& wishes) = 0;
  /// Makes the queue pair and finds the way to the peer.
  virtual void open(const queue_options& queues, const std::string& address, std::uint16_t port) = 0;
  virtual void connect(const connection_wishes& wishes) = 0;
  /// After event connect_request: makes the queue pair.
  virtual void open_request(const queue_options& queues) = 0;
  virtual void accept(const connection_wishes& wishes) = 0;
  virtual void reject(const std::string& private_data) = 0;

  virtual event wait_event(milliseconds limit) = 0;
  /// At least `count` completions, fewer when the time is over.
  virtual std::vector<completion> wait_completions(std::size_t count, milliseconds limit) = 0;
  /// Asynchronous events so far (ibv_get_async_event); our stack has none.
  virtual std::vector<std::string> asynchronous_events() = 0;

  /// Empty, or the error of posting.
  virtual std::string post_send(const work& what) = 0;
  virtual std::string post_receive(const work& what) = 0;

  virtual void disconnect() = 0;
  /// Modify QP to Error.
  virtual void abort() = 0;
  /// Destroys the queue pair, connected or not, and what belongs to it.
  virtual void close() = 0;
};

/// The end this program is built with. `address`: local address to use.
std::unique_ptr<end> make_end();

}  // namespace iwarp::interop
