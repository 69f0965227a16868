#include "tcp_glue/driver.hpp"

#include <algorithm>
#include <cassert>

namespace iwarp::tcp_glue {
namespace {

// The EMSS follows the path MTU. Asking is a system call: once per MiB, and once per 64 calls for those who send
// little.
constexpr std::uint64_t emss_octets = 1U << 20;
constexpr std::uint8_t emss_calls = 64;

}  // namespace

driver::rx_result driver::pump_rx(timestamp now, std::size_t budget) noexcept {
  if (closed_ || rx_ended_) return rx_result::ended;
  if (emss_ == 0) refresh_emss();
  const auto outcome = read_loop(now, budget);
  // Also when nothing was read: the window just asked for lies in memory that other engines use next.
  engine_.rx_park(now);
  if (!closed_) abort_if_wanted();
  return closed_ ? rx_result::ended : outcome;
}

driver::rx_result driver::read_loop(timestamp now, std::size_t budget) noexcept {
  for (std::size_t taken = 0;;) {
    if (!engine_.wants_read()) return rx_result::blocked;
    const auto window = engine_.rx_window();
    if (window.empty()) return rx_result::blocked;
    const auto got = transport_.read(window);
    switch (got.state) {
      case transport::io_state::ok:
        assert(got.size > 0 && got.size <= window.size());
        octets_received_ += got.size;
        taken += got.size;
        engine_.rx_commit(got.size, now);
        if (engine_.wants() == mpa::disposition::abort) return rx_result::ended;
        // A short read emptied the socket: asking again would only cost a system call to hear so.
        if (got.size < window.size()) return rx_result::drained;
        if (taken >= budget) return rx_result::budget;
        break;
      case transport::io_state::would_block:
        return rx_result::drained;
      case transport::io_state::end_of_stream:
        // RFC 5044 s7.2: FIN is indicated after all data; every octet before it has been committed.
        rx_ended_ = true;
        engine_.handle_eof(now);
        return rx_result::ended;
      case transport::io_state::failed:
        lose(got.error, now);
        return rx_result::ended;
    }
  }
}

driver::tx_result driver::pump_tx(timestamp now, std::size_t budget) noexcept {
  if (closed_) return tx_result::ended;
  if (emss_ == 0 || octets_sent_ >= emss_due_at_ || ++calls_to_emss_ >= emss_calls) refresh_emss();
  tx_blocked_ = false;
  for (std::size_t taken = 0;;) {
    if (abort_if_wanted()) return tx_result::ended;
    const auto pieces = engine_.tx_window(now);
    if (pieces.empty()) return nothing_to_send();
    if (taken >= budget) return tx_result::budget;
    const auto put = transport_.write(pieces);
    switch (put.state) {
      case transport::io_state::ok:
        assert(put.size > 0);
        octets_sent_ += put.size;
        taken += put.size;
        engine_.tx_advance(put.size, now);
        break;
      case transport::io_state::would_block:
        tx_blocked_ = true;
        return tx_result::blocked;
      case transport::io_state::end_of_stream:  // reads alone say so
      case transport::io_state::failed:
        lose(put.error, now);
        return tx_result::ended;
    }
  }
}

driver::tx_result driver::nothing_to_send() noexcept {
  switch (engine_.wants()) {  // no default
    case mpa::disposition::keep:
      return tx_result::drained;
    case mpa::disposition::shutdown_write:
      // RFC 5044 s7.2: FIN follows all queued FPDUs; the receiving half stays open.
      if (!write_shut_) transport_.shutdown_write();
      write_shut_ = true;
      return tx_result::drained;
    case mpa::disposition::close:
      transport_.close();
      closed_ = true;
      return tx_result::ended;
    case mpa::disposition::abort:
      abort_if_wanted();
      return tx_result::ended;
  }
  return tx_result::drained;
}

bool driver::abort_if_wanted() noexcept {
  if (engine_.wants() != mpa::disposition::abort) return false;
  transport_.abort();
  closed_ = true;
  return true;
}

void driver::lose(std::error_code reason, timestamp now) noexcept {
  engine_.handle_lost(reason, now);
  // For a reset connection this only frees the descriptor. When the failure was on this side (EFAULT), it tells the
  // peer.
  transport_.abort();
  closed_ = true;
}

void driver::refresh_emss() noexcept {
  calls_to_emss_ = 0;
  emss_due_at_ = octets_sent_ + emss_octets;
  const auto emss = std::max<std::uint32_t>(transport_.emss(), 1);
  if (emss == emss_) return;
  emss_ = emss;
  engine_.handle_emss(emss);
}

}  // namespace iwarp::tcp_glue
