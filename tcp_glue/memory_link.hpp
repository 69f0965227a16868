// Internal to tcp_glue, verbs and tests.
// Two transports joined in one process, with virtual time and with faults by script: what two engines say to each other
// can be cut, delayed, damaged and held back at exact octets, the same way in every run.
// Threading: not thread-safe; one caller at a time, for both ends together.  Time: virtual, moved by advance_to().
// I/O: none.
#pragma once

#include "base/types.hpp"
#include "tcp_glue/transport.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace iwarp::tcp_glue {

class memory_link {
 public:
  enum class side : std::uint8_t { a, b };
  [[nodiscard]] static constexpr side other(side s) noexcept { return s == side::a ? side::b : side::a; }

  struct damage {
    std::uint64_t offset = 0;  ///< of the stream, from 0
    std::byte mask{0xff};      ///< exclusive-ored onto the octet
  };

  /// What happens to one side. Offsets count the octets this side sends, from 0; each may be changed at any time.
  struct script {
    // What this side sends:
    std::size_t capacity = 1U << 20;  ///< octets written and not yet read; beyond, write() says would_block
    duration latency{0};              ///< from write() until the other side can read
    std::size_t read_limit = std::numeric_limits<std::size_t>::max();  ///< most octets one read of the other side gets
    /// Overrides read_limit: asked with the offset at which a read of the other side begins. 0 counts as 1.
    std::function<std::size_t(std::uint64_t offset)> read_limit_at = {};
    std::optional<std::uint64_t> cut_at = {};  ///< once so many octets were read, both sides lose the connection
    std::optional<std::uint64_t> eof_at = {};  ///< the other side reads so many octets, then FIN; the rest vanishes
    std::vector<damage> damages = {};          ///< applied as octets are written

    // What this side's own calls meet:
    std::uint32_t emss = 1460;
    std::uint64_t fail_read = 0;   ///< the so-manieth read() fails, from 1; 0: none. The connection is lost with it
    std::uint64_t fail_write = 0;  ///< the same for write()
    std::error_code failure = std::make_error_code(std::errc::connection_reset);  ///< why those fail
  };

  struct call_counters {
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    bool write_shut = false;  ///< shutdown_write() was called
    bool closed = false;      ///< close() or abort() was called
    bool aborted = false;     ///< abort() was called
  };

  memory_link();
  ~memory_link();

  [[nodiscard]] transport& end(side s) noexcept;
  [[nodiscard]] transport& a() noexcept { return end(side::a); }
  [[nodiscard]] transport& b() noexcept { return end(side::b); }
  [[nodiscard]] script& script_of(side s) noexcept { return half_of(s).plan; }

  // Commands ----------------------------------------------------------------------------------------------------
  /// Moves time; never back.
  void advance_to(timestamp now) noexcept;
  /// Both sides lose the connection now, with what is under way.
  void cut(std::error_code reason = std::make_error_code(std::errc::connection_reset)) noexcept;
  /// Calls the handlers of waits that are ready or were cancelled. Returns how many.
  std::size_t run_handlers();

  // Getters -----------------------------------------------------------------------------------------------------
  [[nodiscard]] timestamp now() const noexcept { return now_; }
  /// When the next octets or FIN that are still under way arrive; `never` for none.
  [[nodiscard]] timestamp next_arrival() const noexcept;
  /// A read() of this side would not say would_block.
  [[nodiscard]] bool readable(side s) const noexcept;
  /// A write() of this side would not say would_block.
  [[nodiscard]] bool writable(side s) const noexcept;
  /// Octets this side sent and the other has not read.
  [[nodiscard]] std::size_t unread(side s) const noexcept { return half_of(s).queued; }
  [[nodiscard]] const call_counters& calls(side s) const noexcept { return half_of(s).calls; }

  memory_link(const memory_link&) = delete;
  memory_link& operator=(const memory_link&) = delete;

 private:
  class link_end;
  struct chunk {
    timestamp arrival;
    std::size_t taken = 0;
    std::vector<std::byte> octets = {};
  };
  // One side, and the octets it sends.
  struct half {
    script plan;
    call_counters calls;
    std::deque<chunk> chunks;
    std::size_t queued = 0;
    std::uint64_t written = 0;
    std::uint64_t delivered = 0;
    timestamp last_arrival{0};
    std::optional<timestamp> fin;  // when FIN arrives
    std::error_code lost;
    std::shared_ptr<readiness_handler> on_readable;
    std::shared_ptr<readiness_handler> on_writable;
    std::vector<std::shared_ptr<readiness_handler>> readable_cancelled;
    std::vector<std::shared_ptr<readiness_handler>> writable_cancelled;
    std::unique_ptr<link_end> transport;
  };

  [[nodiscard]] half& half_of(side s) noexcept { return halves_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] const half& half_of(side s) const noexcept { return halves_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] bool cut_reached() const noexcept;
  [[nodiscard]] bool fin_arrived(const half& sender) const noexcept;
  transport::io_result read(side s, mutable_bytes into) noexcept;
  transport::io_result write(side s, std::span<const gather_piece> pieces) noexcept;
  void send_fin(side s) noexcept;
  void reset(side receiver) noexcept;
  void close(side s, bool abort) noexcept;
  void cancel(side s) noexcept;

  timestamp now_{0};
  std::array<half, 2> halves_;
};

}  // namespace iwarp::tcp_glue
