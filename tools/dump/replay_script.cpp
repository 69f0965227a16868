#include "tools/dump/replay_script.hpp"

namespace iwarp::dump {

void replay_script::on(const mpa_event& e) {
  const bool request = e.kind == mpa::frame_kind::request;
  if (!wanted_ && request) wanted_ = e.at.stream->number;
  if (!mine(e.at)) return;
  if (request) initiator_ = e.at.from;
  auto& target = request ? request_ : reply_;
  target = heard_frame{.wire = {e.wire.begin(), e.wire.end()},
                       .revision = e.revision,
                       .markers = e.markers,
                       .crc = e.crc,
                       .rejected = e.rejected,
                       .enhanced = e.enhanced,
                       .private_data = {e.private_data.begin(), e.private_data.end()}};
}

void replay_script::on(const fpdu_event& e) {
  if (!mine(e.at) || overflow()) return;
  octets_ += e.payload.size();
  if (e.crc == crc_state::cut) incomplete_ = true;
  if (e.at.from != initiator_) {
    auto& payload = open_[e.message];
    payload.insert(payload.end(), e.payload.begin(), e.payload.end());
    return;
  }
  acts_.push_back({.ulpdu = {e.ulpdu.begin(), e.ulpdu.end()}, .after = answers_.size()});
}

void replay_script::on(const message_event& e) {
  if (!mine(e.at) || overflow() || e.at.from == initiator_) return;
  heard_message m{.op = e.op, .tag = e.tag, .tagged_offset = e.tagged_offset, .payload = {}, .read = {}};
  if (const auto payload = open_.find(e.number); payload != open_.end()) {
    m.payload = std::move(payload->second);
    open_.erase(payload);
  }
  if (const auto* r = std::get_if<rdmap::read_request>(&e.detail)) m.read = *r;
  answers_.push_back(std::move(m));
}

void replay_script::on(const problem_event& e) {
  if (mine(e.at) && (e.rule == "TCP" || e.rule == "CAPTURE")) incomplete_ = true;
}

}  // namespace iwarp::dump
