#include "mpa/startup_exchange.hpp"

#include <cassert>

#include "mpa/error.hpp"

namespace iwarp::mpa {

void startup_exchange::queue(const startup_frame& frame) noexcept {
  out_size_ = frame.emit(out_);
  out_sent_ = 0;
}

void startup_exchange::initiate(const startup_options& own, const_bytes private_data) noexcept {
  own_ = own;
  initiator_ = true;
  reader_ = startup_reader{frame_kind::reply};
  state_ = state::wait_reply;
  queue(make_request(own, private_data));
}

void startup_exchange::respond(const startup_options& own) noexcept {
  own_ = own;
  initiator_ = false;
  reader_ = startup_reader{frame_kind::request};
  state_ = state::wait_request;
}

result<std::size_t> startup_exchange::consume(const_bytes in) noexcept {
  if (in.empty()) return std::size_t{0};
  if (state_ == state::failed) return fail(error_);
  if (state_ != state::wait_reply && state_ != state::wait_request) {
    // The initiator may not send before it has the Reply (RFC 5044 s7.1.2 rules 3 and 9).
    error_ = make_error_code(errc::unexpected_octets);
    state_ = state::failed;
    return fail(error_);
  }
  const auto used = reader_.consume(in);
  if (!used) {
    error_ = used.error();
    state_ = state::failed;
    return fail(error_);
  }
  if (reader_.complete()) {
    if (auto r = frame_complete(); !r) {
      error_ = r.error();
      state_ = state::failed;
      return fail(error_);
    }
    if (!initiator_ && *used < in.size()) return consume(in.subspan(*used));
  }
  return *used;
}

result<> startup_exchange::frame_complete() noexcept {
  peer_ = reader_.frame();
  if (!initiator_) {
    if (auto r = check_request(own_, peer_); !r) return r;
    state_ = state::deciding;
    return {};
  }
  if (peer_.header.rejected) {
    state_ = state::rejected;
    // siw answers a Request for markers with R=1; the user must learn which of the two it was.
    error_ = make_error_code(own_.markers && peer_.data_size == 0 ? errc::markers_refused : errc::rejected);
    return {};
  }
  if (auto r = apply_reply(own_, peer_, agreed_); !r) return r;
  state_ = state::agreed;
  return {};
}

void startup_exchange::accept(const startup_options& own, const_bytes private_data) noexcept {
  assert(state_ == state::deciding);
  own_ = own;
  const accepted answer = accept_request(own, peer_, private_data);
  agreed_ = answer.agreed;
  queue(answer.reply);
  state_ = state::agreed;
}

void startup_exchange::reject(const_bytes private_data) noexcept {
  assert(state_ == state::deciding);
  queue(reject_request(own_, peer_, private_data));
  state_ = state::rejected;
}

}  // namespace iwarp::mpa
