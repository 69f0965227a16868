#include "tools/dump/replayer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mpa/fpdu_tx.hpp"
#include "tools/common/failure.hpp"
#include "tools/common/peer.hpp"
#include "tools/dump/live_stream.hpp"
#include "tools/dump/replay_keys.hpp"

namespace iwarp::dump {
namespace {

constexpr std::size_t queue_enough = 256 * 1024;

/// Every event to two sinks.
class tee final : public event_sink {
 public:
  tee(event_sink& a, event_sink& b) noexcept : a_(a), b_(b) {}
  void on(const stream_event& e) override { tell(e); }
  void on(const mpa_event& e) override { tell(e); }
  void on(const fpdu_event& e) override { tell(e); }
  void on(const message_event& e) override { tell(e); }
  void on(const problem_event& e) override { tell(e); }
  void on(const note_event& e) override { tell(e); }
  void on(const summary_event& e) override { tell(e); }

 private:
  template <class Event>
  void tell(const Event& e) {
    a_.on(e);
    b_.on(e);
  }
  event_sink& a_;
  event_sink& b_;
};

std::string words(const heard_message& m) {
  std::string text = fmt::format("{} of {} octets", short_name(m.op), m.payload.size());
  if (m.op == rdmap::opcode::terminate) {
    if (const auto t = rdmap::terminate_message::parse(m.payload)) text = "Terminate, " + rdmap::describe(t->code);
  }
  return text;
}

class player {
 public:
  player(const replay_script& script, const replay_options& options, event_sink& out)
      : script_(script),
        options_(options),
        both_(live_, out),
        keys_(script),
        stream_(tools::resolve_peer(options.where), options.patience, both_) {}

  std::vector<std::string> play() {
    stream_.send(script_.request()->wire);
    stream_.run([&] { return live_.reply().has_value(); }, options_.patience);
    if (!live_.reply()) {
      differs(stream_.ended() ? "the peer closed the connection instead of a Reply" : "no Reply came in time");
    } else if (compare_replies() && !live_.reply()->rejected) {
      play_acts();
    }
    stream_.close_write();
    stream_.run([] { return false; }, std::min(options_.patience, std::chrono::milliseconds(1000)));
    compare_answers();
    if (live_.answers().size() > script_.answers().size()) {
      differs(fmt::format("the peer went on: {}", words(live_.answers()[script_.answers().size()])));
    }
    both_.on(stream_.finish());
    return std::move(differences_);
  }

 private:
  void differs(std::string text) { differences_.push_back(std::move(text)); }

  /// False when there is no way to go on.
  bool compare_replies() {
    if (!script_.reply()) return true;
    const heard_frame& was = *script_.reply();
    const heard_frame& is = *live_.reply();
    const auto number = [&](const char* name, unsigned a, unsigned b) {
      if (a != b) differs(fmt::format("Reply: {} was {}, is {}", name, a, b));
    };
    number("revision", was.revision, is.revision);
    number("M", was.markers, is.markers);
    number("C", was.crc, is.crc);
    number("R", was.rejected, is.rejected);
    number("S", was.enhanced.has_value(), is.enhanced.has_value());
    if (was.enhanced && is.enhanced) {
      number("IRD", was.enhanced->ird, is.enhanced->ird);
      number("ORD", was.enhanced->ord, is.enhanced->ord);
      number("A", was.enhanced->peer_to_peer, is.enhanced->peer_to_peer);
      number("B", was.enhanced->rtr.send, is.enhanced->rtr.send);
      number("C of RTR", was.enhanced->rtr.write, is.enhanced->rtr.write);
      number("D", was.enhanced->rtr.read, is.enhanced->rtr.read);
    }
    if (was.private_data != is.private_data) differs("Reply: the private data is another");
    return was.rejected == is.rejected;
  }

  void play_acts() {
    mpa::fpdu_tx tx;
    tx.start(script_.request()->crc || live_.reply()->crc, live_.reply()->markers);
    mpa::tx_batch batch;
    for (const initiator_act& act : script_.acts()) {
      const auto heard = [&] { return live_.answers().size() >= act.after; };
      stream_.run(heard, options_.patience);
      if (!compare_answers()) return;
      if (!heard()) {
        missing();
        return;
      }
      std::vector<std::byte> ulpdu = act.ulpdu;
      keys_.translate(ulpdu);
      if (ulpdu.empty()) continue;  // an FPDU without ULPDU: nothing that this stack would send
      const std::size_t header = std::min<std::size_t>(ulpdu.size(), mpa::tx_batch::max_header);
      const const_bytes payload[] = {const_bytes(ulpdu).subspan(header)};
      tx.frame(batch, const_bytes(ulpdu).first(header), std::span(payload, payload[0].empty() ? 0 : 1));
      for (const gather_piece& p : batch.pieces()) stream_.send(as_const_bytes(p.data, p.size));
      batch.advance(batch.size());
      if (stream_.queued() > queue_enough) stream_.run([&] { return stream_.queued() == 0; }, options_.patience);
    }
    stream_.run([&] { return stream_.queued() == 0 && live_.answers().size() >= script_.answers().size(); },
                options_.patience);
    if (compare_answers() && live_.answers().size() < script_.answers().size()) missing();
  }

  void missing() {
    differs(fmt::format("{} instead of message {} of the peer, {}",
                        stream_.ended() ? "the connection ended" : "nothing came in time", compared_ + 1,
                        words(script_.answers()[compared_])));
  }

  /// Those that came since the last call. False when one is so different that there is no way to go on.
  bool compare_answers() {
    while (compared_ < std::min(live_.answers().size(), script_.answers().size())) {
      const heard_message& was = script_.answers()[compared_];
      const heard_message& is = live_.answers()[compared_];
      ++compared_;
      if (was.op != is.op) {
        if (!diverged_) differs(fmt::format("message {} of the peer was {}, is {}", compared_, words(was), words(is)));
        diverged_ = true;
        return false;
      }
      if (was.payload.size() != is.payload.size()) {
        differs(fmt::format("message {} of the peer was {}, is {}", compared_, words(was), words(is)));
      } else if (const auto at = keys_.learn(was, is)) {
        differs(fmt::format("message {} of the peer, {}: other octets from {} on", compared_, words(was), *at));
      }
    }
    return !diverged_;
  }

  const replay_script& script_;
  const replay_options& options_;
  replay_script live_{0};
  tee both_;
  replay_keys keys_;
  live_stream stream_;
  std::size_t compared_ = 0;
  bool diverged_ = false;
  std::vector<std::string> differences_;
};

}  // namespace

std::vector<std::string> replay(const replay_script& script, const replay_options& options, event_sink& out) {
  if (!script.request()) throw tools::failure("there is no MPA Request to replay in the capture");
  if (script.incomplete())
    throw tools::failure("octets of the stream are missing from the capture: it cannot be replayed");
  if (script.overflow()) throw tools::failure("the stream holds more than 1 GiB, too much to replay");
  return player(script, options, out).play();
}

}  // namespace iwarp::dump
