#include "verbs/error.hpp"

#include <string>

namespace iwarp::verbs {

namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp.verbs"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::invalid_argument:
        return "an argument is out of its range";
      case errc::invalid_depth:
        return "queue depth out of range";
      case errc::invalid_sge_count:
        return "more scatter/gather elements than the queue was created for";
      case errc::invalid_length:
        return "message or inline data too long";
      case errc::invalid_access:
        return "access rights contradict each other: remote write needs local write";
      case errc::invalid_memory:
        return "memory is not mapped, or not writable";
      case errc::invalid_private_data:
        return "private data too long: 508 octets at most, 512 with MPA revision 1";
      case errc::invalid_read_depth:
        return "IRD or ORD above 16382";
      case errc::invalid_revision:
        return "MPA revision must be 1 or 2, and peer-to-peer needs 2";
      case errc::invalid_opcode:
        return "no such operation";
      case errc::invalid_key:
        return "the key belongs to no region of this protection domain";
      case errc::queue_full:
        return "the queue is full: poll completions first";
      case errc::not_connected:
        return "the queue pair is not connected";
      case errc::already_connected:
        return "the queue pair has a connection already";
      case errc::has_shared_receive_queue:
        return "receives of this queue pair go to its shared receive queue";
      case errc::no_such_request:
        return "the connection request was answered already, or its peer has gone";
      case errc::recording_failed:
        return "the file to record traffic to (record_to, or environment variable IWARP_PCAP) cannot be created, or is "
               "being "
               "recorded to already; %p in its name makes one file a process";
      case errc::wrong_context:
        return "the objects belong to different contexts";
      case errc::wrong_state:
        return "not possible in this state";
      case errc::peer_unreachable:
        return "the peer cannot be reached";
      case errc::address_in_use:
        return "address already in use";
      case errc::timed_out:
        return "timed out";
      case errc::cq_overflow:
        return "a completion queue overflowed";
      case errc::too_many:
        return "too many regions";
      case errc::not_automatic:
        return "not possible with manual progress";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace iwarp::verbs
