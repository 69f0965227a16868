#include "mpa/error.hpp"

#include <string>

namespace iwarp::mpa {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp.mpa"; }

  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {  // no default: -Wswitch names a forgotten enumerator
      case errc::tcp_lost:
        return "TCP connection lost: closed, reset or timed out, or FIN inside an FPDU";
      case errc::crc_mismatch:
        return "CRC mismatch: received and computed CRC32c of an FPDU differ";
      case errc::marker_mismatch:
        return "marker mismatch: a marker and ULPDU_Length disagree about where an FPDU starts";
      case errc::bad_key:
        return "bad key: the peer's first octets are no MPA start-up frame; it does not speak iWARP";
      case errc::same_role:
        return "same role: the peer sent the MPA key of our own role; both sides are initiators, or both responders";
      case errc::bad_revision:
        return "bad revision: the peer's start-up frame has an MPA revision this side cannot use";
      case errc::bad_private_data:
        return "bad private data: PD_Length is over 512, or below 4 in a frame with enhanced data";
      case errc::unexpected_octets:
        return "unexpected octets: the peer sent something behind its MPA Request before it had a Reply";
      case errc::not_enhanced:
        return "not enhanced: the peer answered an enhanced MPA Request with an unenhanced Reply";
      case errc::startup_cut_short:
        return "start-up cut short: TCP ended inside an MPA start-up frame";
      case errc::startup_timeout:
        return "start-up timed out: the peer's MPA start-up frame did not arrive in time";
      case errc::first_fpdu_timeout:
        return "first FPDU timed out: the initiator sent none after the MPA Reply";
      case errc::fpdu_timeout:
        return "FPDU timed out: the peer began an FPDU and did not finish it in time";
      case errc::rejected:
        return "connection rejected by the peer's ULP (MPA Reply with R=1)";
      case errc::markers_refused:
        return "markers refused: the peer rejected an MPA Request that asked for markers";
      case errc::local_catastrophic:
        return "local catastrophic error during enhanced MPA start-up";
      case errc::insufficient_ird:
        return "insufficient IRD: this side cannot hold as many Reads as the responder's ORD";
      case errc::no_matching_rtr:
        return "no matching RTR: initiator and responder have no ready-to-receive type in common";
    }
    return "unknown MPA error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace iwarp::mpa
