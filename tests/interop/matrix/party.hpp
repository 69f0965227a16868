// Part of the interop matrix.
// The two ends as the driver sees them, and connections between them.
// Threading: one thread.  Time: every wait has a limit.  I/O: the control connections.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tests/interop/matrix/control.hpp"

namespace iwarp::interop {

/// Room for 16 messages of 1 MiB, or one of 16.
inline constexpr std::uint64_t region_size = 18u << 20;

/// There is no reaching an end any more, a siw host whose kernel panicked for one: the run is over.
struct party_lost {
  std::string what;
};

/// One end, its address, and memory that all its connections share. A party whose process was killed starts again.
class party {
 public:
  /// `provider`: as in interop::about; known before the end is there, so that cells can be listed without one.
  party(std::string name, std::string provider, std::string address, std::function<line_socket()> start);

  remote_end* operator->() { return &end(); }
  remote_end& end();
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] bool is_siw() const noexcept { return provider_ == "siw"; }
  region& source() { return end(), source_; }
  region& sink() { return end(), sink_; }
  /// Its process has gone, or answers no more: the next use begins with a new one.
  void forget() { end_.reset(); }

 private:
  std::string name_;
  std::string provider_;
  std::string address_;
  std::function<line_socket()> start_;
  std::unique_ptr<remote_end> end_;
  region source_;
  region sink_;
};

/// How the two sides of a connection are made.
struct connection_plan {
  connection_wishes connector = {};
  connection_wishes listener = {};
  queue_options queues = {};
};

/// What each side was told when the connection came up.
struct connected {
  event request;
  event at_connector;
  event at_listener;
};

/// Throws failure unless `e` is of that kind.
const event& require_kind(const event& e, const std::string& kind, const party& where);
void require(bool condition, const std::string& what);

/// Brings both queue pairs to the point where the listener has its request and has not answered.
event ask_for_connection(party& connector, party& listener, const connection_plan& plan);
/// Connects. `before`: done between the making of the queue pairs and the answer, for receives that must be there
/// first.
connected establish(party& connector, party& listener, const connection_plan& plan,
                    const std::function<void()>& before = {});
/// A Write of no octets, so that the responder may send (RFC 5044 s7.1.2): a siw initiator has no message of its own
/// for that.
void send_first(party& connector);
/// `by` disconnects; both must be told.
void disconnect(party& by, party& other);
/// Ends whatever there is, without a word.
void drop(party& a, party& b) noexcept;

}  // namespace iwarp::interop
