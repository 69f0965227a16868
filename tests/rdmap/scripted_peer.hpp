// Internal to tests.
// The other end of a stream, played by hand: exact octets in, exact octets out. Stands where the glue stands too, so it
// decides how reads are cut, when TCP takes octets, and what time it is.
// Threading: not thread-safe; one caller at a time.  Time: its own, virtual.  I/O: none.
#pragma once

#include <limits>

#include "tests/rdmap/stream_side.hpp"

namespace iwarp::stream_test {

struct peer_options {
  bool initiator = true;  ///< the peer's role; the stream has the other
  std::uint8_t revision = 2;
  bool crc = true;
  bool markers = false;  ///< the peer asks for markers (M)
  std::uint16_t ird = 16, ord = 16;
  bool peer_to_peer = false;
  mpa::rtr_set rtr{};
  octets data = {};
};

class scripted_peer {
 public:
  explicit scripted_peer(const peer_options& peer = {}, const rdmap::stream_options& options = {},
                         const side_sizes& sizes = {});

  stream_side side;
  fpdu_framer framer;
  fpdu_splitter splitter;
  std::size_t chunk = std::numeric_limits<std::size_t>::max();  ///< octets of each read
  std::uint16_t accept_ird = 16, accept_ord = 16;               ///< what the stream answers with

  // Start-up
  [[nodiscard]] octets own_frame() const;  ///< the peer's Request or Reply, by its options
  /// initiate() or respond(), and as initiator takes the Request.
  void begin();
  /// The whole start-up. Fails the test if it does not end in full operation.
  void start();
  /// start() and, when the peer is the initiator, one zero-length Write that opens the stream's transmit side.
  void open();
  [[nodiscard]] const octets& startup_octets() const noexcept { return startup_octets_; }  ///< from the stream

  // Octets
  /// Offers octets in reads of `chunk`. Returns how many the stream took.
  std::size_t feed(const_bytes in);
  /// Frames and feeds.
  std::size_t send(const octets& ulpdu) { return feed(framer.frame(ulpdu)); }
  /// Takes at most `limit` octets of what the stream sends.
  octets drain(std::size_t limit = std::numeric_limits<std::size_t>::max());
  /// Takes everything the stream sends and returns the ULPDUs in it.
  std::vector<octets> take();
  void eof() { side.engine.handle_eof(side.now); }
  void lose() { side.engine.handle_lost(std::make_error_code(std::errc::connection_reset), side.now); }
  /// Moves time and calls the deadlines that are due on the way.
  void pass(duration time);

  /// The stream sends this Terminate as the last thing, then FIN. Fails the test otherwise.
  void expect_terminate(const octets& ulpdu);
  /// The stream sends nothing, and resets.
  void expect_reset();

 private:
  peer_options peer_;
  octets startup_octets_;
};

}  // namespace iwarp::stream_test
