#include "rdmap/error.hpp"

#include <string>

namespace iwarp::rdmap {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp.rdmap"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {  // no default: a new error does not compile without its words
      case errc::local_catastrophic:
        return "local catastrophic error in RDMAP: a local failure, or the stream was terminated on request";
      case errc::source_invalid_stag:
        return "Read Request with an invalid source STag: unknown, wrong key, or invalidated";
      case errc::source_base_or_bounds:
        return "Read Request outside the base and bounds of the buffer its source STag names";
      case errc::source_no_access:
        return "Read Request for a source STag that does not allow remote read";
      case errc::source_not_associated:
        return "Read Request for a source STag of another protection domain or stream";
      case errc::source_offset_wrap:
        return "Read Request whose source tagged offset (SrcTO) plus size wraps 2^64";
      case errc::invalidate_invalid_stag:
        return "Send with Invalidate of an invalid STag: unknown, wrong key, or already invalidated";
      case errc::invalidate_no_access:
        return "Send with Invalidate of an STag that does not allow remote access";
      case errc::invalidate_not_associated:
        return "Send with Invalidate of an STag of another protection domain or stream";
      case errc::cannot_invalidate:
        return "Send with Invalidate of an STag that cannot be invalidated remotely: shared, STag 0, or windows are "
               "bound to it";
      case errc::bad_version:
        return "RDMAP version other than 1";
      case errc::unexpected_opcode:
        return "unexpected RDMAP opcode: unassigned, or not valid with this DDP model, queue or state";
      case errc::stream_catastrophic:
        return "catastrophic error of this RDMAP stream";
      case errc::message_not_single:
        return "RDMAP message not in the one segment it must be, or its last segment is missing";
      case errc::peer_closed_with_work:
        return "the peer closed the connection while work was outstanding";
      case errc::cq_overflow:
        return "a completion queue overflowed";
      case errc::device_catastrophic:
        return "catastrophic error of the whole device";
      case errc::unspecified:
        return "unspecified RDMAP error: the message breaks a rule that has no error code of its own";
      case errc::terminated_by_peer:
        return "the peer terminated the stream with a Terminate message";
    }
    return "unknown RDMAP error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace iwarp::rdmap
