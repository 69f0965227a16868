#include "ddp/error.hpp"

#include <string>

namespace iwarp::ddp {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp.ddp"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {  // no default: a new error does not compile without its words
      case errc::local_catastrophic:
        return "local catastrophic error in DDP";
      case errc::segment_too_short:
        return "segment too short: the ULPDU ends inside its DDP or RDMAP header";
      case errc::tagged_invalid_stag:
        return "tagged segment with an invalid STag: unknown, wrong key, or invalidated";
      case errc::tagged_base_or_bounds:
        return "tagged segment outside the base and bounds of the buffer its STag names";
      case errc::tagged_not_associated:
        return "tagged segment with an STag of another protection domain or stream";
      case errc::tagged_no_access:
        return "tagged segment with an STag that does not allow this access";
      case errc::tagged_offset_wrap:
        return "tagged segment whose tagged offset (TO) plus length wraps 2^64";
      case errc::tagged_bad_version:
        return "tagged segment of a DDP version other than 1";
      case errc::untagged_invalid_queue:
        return "untagged segment with an invalid queue number (QN)";
      case errc::untagged_no_buffer:
        return "untagged message for which its queue has no buffer";
      case errc::untagged_msn_out_of_range:
        return "untagged segment whose message sequence number (MSN) is not the expected one";
      case errc::untagged_invalid_offset:
        return "untagged segment whose message offset (MO) does not continue its message";
      case errc::untagged_too_long:
        return "untagged message longer than its buffer";
      case errc::untagged_bad_version:
        return "untagged segment of a DDP version other than 1";
    }
    return "unknown DDP error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace iwarp::ddp
