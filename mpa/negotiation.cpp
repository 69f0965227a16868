#include "mpa/negotiation.hpp"

#include "mpa/error.hpp"

#include <algorithm>
#include <cassert>

namespace iwarp::mpa {
namespace {

constexpr std::uint8_t plain_revision = 1;
constexpr std::uint8_t enhanced_revision = 2;

constexpr rtr_set common(rtr_set a, rtr_set b) noexcept {
  return {.send = a.send && b.send, .write = a.write && b.write, .read = a.read && b.read};
}

/// Write first, since it takes no resource of the responder; then Read, then Send (the RFC leaves the order open).
constexpr rtr_kind preferred(rtr_set set) noexcept {
  if (set.write) return rtr_kind::write;
  if (set.read) return rtr_kind::read;
  return set.send ? rtr_kind::send : rtr_kind::none;
}

/// Computes private_data_length and enhanced of the header, so that the frame reads as its own parse would.
void complete(startup_frame& frame, const_bytes private_data) noexcept {
  const std::size_t enhanced_size = frame.enhanced ? enhanced_data_size : 0;
  assert(private_data.size() <= max_private_data - enhanced_size);
  std::ranges::copy(private_data, frame.data.begin());
  frame.data_size = private_data.size();
  frame.header.enhanced = frame.enhanced.has_value();
  frame.header.private_data_length = static_cast<std::uint16_t>(enhanced_size + private_data.size());
}

/// What accepting and rejecting Replies have in common, without enhanced data.
startup_frame begin_reply(const startup_options& own, const startup_frame& request) noexcept {
  startup_frame reply;
  reply.header.kind = frame_kind::reply;
  reply.header.revision = request.header.revision;  // RFC 6581 leaves it open for S=0; siw echoes too
  reply.header.markers = own.markers;
  // CRC is on once either frame has C=1 (RFC 5044 s7.1.1). Some initiators look at the Reply alone, so it states the
  // outcome.
  reply.header.crc = own.crc || request.header.crc;
  return reply;
}

/// RTR types a Reply flags: none without A; all requested ones that are supported; at least one (RFC 6581 s9.2).
rtr_set reply_rtr(const startup_options& own, const enhanced_data& request) noexcept {
  if (!request.peer_to_peer) return {};
  assert(own.rtr.any());
  const rtr_set both = common(own.rtr, request.rtr);
  return both.any() ? both : own.rtr;
}

}  // namespace

startup_frame make_request(const startup_options& own, const_bytes private_data) noexcept {
  assert(own.revision == plain_revision || own.revision == enhanced_revision);
  assert(own.ird <= max_depth && own.ord <= max_depth);
  startup_frame request;
  request.header.kind = frame_kind::request;
  request.header.revision = own.revision;
  request.header.markers = own.markers;
  request.header.crc = own.crc;
  if (own.revision >= enhanced_revision) {
    assert(!own.peer_to_peer || own.rtr.any());
    request.enhanced = enhanced_data{.peer_to_peer = own.peer_to_peer,
                                     .rtr = own.peer_to_peer ? own.rtr : rtr_set{},
                                     .ird = own.ird,
                                     .ord = own.ord};
  }
  complete(request, private_data);
  return request;
}

result<> check_request(const startup_options& own, const startup_frame& request) noexcept {
  // A responder without enhanced support MUST close on an enhanced Request (RFC 6581 s10).
  if (request.enhanced && own.revision < enhanced_revision) return fail(errc::bad_revision);
  return {};
}

accepted accept_request(const startup_options& own, const startup_frame& request, const_bytes private_data) noexcept {
  accepted out;
  out.reply = begin_reply(own, request);
  out.agreed = {.revision = request.header.revision,
                .enhanced = request.enhanced.has_value(),
                .crc = out.reply.header.crc,
                .rx_markers = own.markers,
                .tx_markers = request.header.markers,
                .ird = own.ird,
                .ord = own.ord};
  if (request.enhanced) {
    const enhanced_data& asked = *request.enhanced;
    const rtr_set rtr = reply_rtr(own, asked);
    std::uint16_t stated_ird = depth_not_negotiated;
    std::uint16_t stated_ord = depth_not_negotiated;
    if (asked.ord != depth_not_negotiated) {  // else IRD MUST be left alone (RFC 6581 s9.1)
      out.agreed.ird = std::max(own.ird, std::min(asked.ord, own.max_ird));
      // A Read as RTR needs an entry even if the initiator asked for none.
      if (rtr.read) out.agreed.ird = std::max(out.agreed.ird, std::uint16_t{1});
      stated_ird = out.agreed.ird;
    }
    if (asked.ird != depth_not_negotiated) {  // else ORD MUST be left alone (RFC 6581 s9.1)
      out.agreed.ord = std::min(own.ord, asked.ird);
      stated_ord = out.agreed.ord;
    }
    out.agreed.peer_ird = asked.ird;
    out.agreed.peer_ord = asked.ord;
    out.agreed.peer_to_peer = asked.peer_to_peer;
    out.agreed.rtr_accepted = rtr;
    out.reply.enhanced =
        enhanced_data{.peer_to_peer = asked.peer_to_peer, .rtr = rtr, .ird = stated_ird, .ord = stated_ord};
  }
  complete(out.reply, private_data);
  return out;
}

startup_frame reject_request(const startup_options& own, const startup_frame& request,
                             const_bytes private_data) noexcept {
  startup_frame reply = begin_reply(own, request);
  reply.header.rejected = true;
  if (request.enhanced) {
    const enhanced_data& asked = *request.enhanced;
    const bool no_ird = asked.ord == depth_not_negotiated;
    const bool no_ord = asked.ird == depth_not_negotiated;
    // Not lowered to the initiator's IRD: the peer shall learn what would have been needed (RFC 6581 s9.1).
    reply.enhanced = enhanced_data{.peer_to_peer = asked.peer_to_peer,
                                   .rtr = reply_rtr(own, asked),
                                   .ird = no_ird ? depth_not_negotiated : own.ird,
                                   .ord = no_ord ? depth_not_negotiated : own.ord};
  }
  complete(reply, private_data);
  return reply;
}

result<> apply_reply(const startup_options& own, const startup_frame& reply, negotiated& agreed) noexcept {
  assert(!reply.header.rejected);
  agreed = {.revision = reply.header.revision,
            .enhanced = own.revision >= enhanced_revision,
            .crc = own.crc || reply.header.crc,
            .rx_markers = own.markers,
            .tx_markers = reply.header.markers,
            .ird = own.ird,
            .ord = own.ord};
  if (reply.header.revision != plain_revision && reply.header.revision != enhanced_revision) {
    return fail(errc::bad_revision);
  }
  if (own.revision < enhanced_revision) {
    // An unenhanced Request MUST get an unenhanced Reply (RFC 6581 s10).
    if (reply.enhanced) return fail(errc::bad_revision);
    return {};
  }
  if (!reply.enhanced) return fail(errc::not_enhanced);

  const enhanced_data& stated = *reply.enhanced;
  agreed.peer_ird = stated.ird;
  agreed.peer_ord = stated.ord;
  // 0x3FFF on either: the ULP takes care, the own value MUST be left alone (RFC 6581 s9.1).
  if (stated.ird != depth_not_negotiated) agreed.ord = std::min(own.ord, stated.ird);
  if (stated.ord != depth_not_negotiated && stated.ord > own.ird) {
    // IRD MUST be at least the responder's ORD, or the connection ends (RFC 6581 s9.1).
    if (stated.ord > own.max_ird) return fail(errc::insufficient_ird);
    agreed.ird = stated.ord;
  }
  // A Reply without the echo of A is taken as the client/server model; one with A though none was asked for, likewise.
  agreed.peer_to_peer = own.peer_to_peer && stated.peer_to_peer;
  if (agreed.peer_to_peer) {
    agreed.rtr = preferred(common(own.rtr, stated.rtr));
    if (agreed.rtr == rtr_kind::none) return fail(errc::no_matching_rtr);
  }
  return {};
}

}  // namespace iwarp::mpa
