#include <array>

#include "tests/interop/matrix/cells.hpp"
#include "tests/interop/matrix/layout.hpp"

namespace iwarp::interop {
namespace {

constexpr std::uint64_t guard = 40;  // poisoned octets before the first message; a multiple of 8
constexpr std::uint64_t receive_ids = 1u << 20;
constexpr std::uint64_t notice_id = 1u << 21;

constexpr std::array<std::uint32_t, 12> sizes{0, 1, 63, 64, 1447, 1448, 1449, 4096, 65535, 65536, 1 << 20, 16 << 20};

struct transfer {
  const char* name;
  operation op;
  bool solicited = false;
  bool inline_data = false;
};
constexpr std::array<transfer, 8> transfers{{{"Send", operation::send},
                                             {"Send with SE", operation::send, true},
                                             {"Send with Invalidate", operation::send_invalidate},
                                             {"Send with SE and Invalidate", operation::send_invalidate, true},
                                             {"Write", operation::write},
                                             {"Read", operation::read},
                                             {"Send inline", operation::send, false, true},
                                             {"Write inline", operation::write, false, true}}};

/// 128 messages where they fit, fewer of the large ones.
std::uint32_t deep(std::uint32_t size, bool quick) {
  if (quick) return size <= 4096 ? 16 : 2;
  return size <= 65536 ? 128 : size <= 1 << 20 ? 16 : 1;
}

void require_completions(const std::vector<completion>& got, std::uint64_t first_id, std::uint32_t count,
                         const party& where, const char* what) {
  require(got.size() == count, where.name() + ", " + what + ": " + std::to_string(got.size()) + " of " +
                                   std::to_string(count) + " completions");
  for (std::uint32_t i = 0; i < count; ++i) {
    require(got[i].id == first_id + i, where.name() + ", " + what + ": completion of " + std::to_string(got[i].id) +
                                           " where that of " + std::to_string(first_id + i) + " is due");
    require(got[i].status == "success", where.name() + ", " + what + " " + std::to_string(i) + ": " + got[i].status);
  }
}

/// One kind of transfer, `from` acts. Empty, or what the note says.
class one_transfer {
 public:
  one_transfer(party& from, party& to, const transfer& kind, std::uint32_t size, std::uint32_t pieces,
               std::uint32_t depth, std::uint64_t seed)
      : from_(from), to_(to), kind_(kind), size_(size), pieces_(pieces), depth_(depth), seed_(seed) {}

  std::string run() {
    if (from_.is_siw() && size_ != 0 && size_ < pieces_) {
      throw skipped("siw's kernel panics in siw_tx_hdt() when an element of a list is empty and others are not");
    }
    switch (kind_.op) {
      case operation::send:
      case operation::send_invalidate:
        return send();
      case operation::write:
        return write();
      case operation::read:
        return read();
      case operation::local_invalidate:
        break;
    }
    return {};
  }

 private:
  [[nodiscard]] layout place(const region& where, std::uint32_t pieces) const {
    return {.region = where.index,
            .at = guard,
            .stride = stride_for(size_),
            .count = depth_,
            .size = size_,
            .pieces = pieces};
  }
  /// An empty message at the end of the sink. siw's user library refuses a receive without elements.
  [[nodiscard]] layout notice() const { return {.region = to_.sink().index, .at = region_size - 64}; }
  void check(party& where, const layout& messages) {
    const std::string wrong = where->verify(messages, seed_, messages.at - guard, guard + span_of(messages));
    require(wrong.empty(), where.name() + ": " + wrong);
  }
  [[nodiscard]] work request(const layout& local) const {
    return {
        .op = kind_.op, .first_id = 0, .solicited = kind_.solicited, .inline_data = kind_.inline_data, .local = local};
  }
  void post(party& where, const work& what) {
    const std::string problem = where->post_send(what);
    if (problem.empty()) return;
    throw failure(where.name() + ", posting: " + problem);
  }

  std::string send() {
    const layout source = place(from_.source(), pieces_);
    const layout sink = place(to_.sink(), pieces_);
    from_->fill(source, seed_);
    work what = request(source);
    region victim;
    if (kind_.op == operation::send_invalidate) {
      victim = to_->add_region(4096, "w");
      what.invalidate = victim.key;
    }
    const std::string problem = to_->post_receive({.first_id = receive_ids, .local = sink});
    require(problem.empty(), to_.name() + ", posting: " + problem);
    post(from_, what);
    const auto received = to_->wait_completions(depth_);
    require_completions(received, receive_ids, depth_, to_, "receive");
    require_completions(from_->wait_completions(depth_), 0, depth_, from_, "send");
    for (const completion& c : received) {
      require(c.length == size_, to_.name() + ": received " + std::to_string(c.length) + " octets");
      if (to_.is_siw()) continue;
      require(c.solicited == kind_.solicited, to_.name() + ": solicited differs");
      require(c.invalidated == what.invalidate, to_.name() + ": another STag was invalidated");
    }
    check(to_, sink);
    if (victim.key != 0) {
      require(to_.is_siw() || !to_->region_valid(victim), to_.name() + ": the region is valid after an invalidate");
      to_->remove_region(victim);
      if (to_.is_siw()) return "siw invalidates the key and does not tell the user";
    }
    return {};
  }

  std::string write() {
    const layout source = place(from_.source(), pieces_);
    const layout sink = place(to_.sink(), 1);
    from_->fill(source, seed_);
    work what = request(source);
    what.remote_key = to_.sink().key;
    what.remote_at = to_.sink().address + sink.at;
    what.remote_stride = sink.stride;
    // A Send behind the Writes tells that they are there (protocol.md 3.9).
    const std::string problem = to_->post_receive({.first_id = notice_id, .local = notice()});
    require(problem.empty(), to_.name() + ", posting: " + problem);
    post(from_, what);
    post(from_, {.op = operation::send, .first_id = depth_, .local = {.pieces = 0}});
    require_completions(to_->wait_completions(1), notice_id, 1, to_, "receive");
    require_completions(from_->wait_completions(depth_ + 1), 0, depth_ + 1, from_, "write");
    check(to_, sink);
    return {};
  }

  std::string read() {
    const layout source = place(to_.source(), 1);
    const layout sink = place(from_.sink(), pieces_);
    to_->fill(source, seed_);
    work what = request(sink);
    what.remote_key = to_.source().key;
    what.remote_at = to_.source().address + source.at;
    what.remote_stride = source.stride;
    post(from_, what);
    require_completions(from_->wait_completions(depth_), 0, depth_, from_, "read");
    check(from_, sink);
    return {};
  }

  party& from_;
  party& to_;
  const transfer& kind_;
  std::uint32_t size_;
  std::uint32_t pieces_;
  std::uint32_t depth_;
  std::uint64_t seed_;
};

/// A connection that is made when the first cell wants it, and anew after a failure.
class lazy_connection {
 public:
  lazy_connection(party& connector, party& listener, connection_plan plan)
      : connector_(connector), listener_(listener), plan_(std::move(plan)) {}
  ~lazy_connection() {
    if (up_) drop(connector_, listener_);
  }
  lazy_connection(const lazy_connection&) = delete;
  lazy_connection& operator=(const lazy_connection&) = delete;

  void need() {
    if (up_) return;
    drop(connector_, listener_);
    for (party* side : {&connector_, &listener_}) side->end().poison(side->sink(), 0, region_size);
    const connected how = establish(connector_, listener_, plan_);
    up_ = true;
    for (const auto& [side, e] : {std::pair{&connector_, &how.at_connector}, {&listener_, &how.at_listener}}) {
      if (side->is_siw()) continue;
      require(e->crc == plan_.connector.crc, side->name() + ": CRC is " + (e->crc ? "on" : "off"));
    }
    send_first(connector_);
  }
  void after(bool good) {
    if (!good) up_ = false;
  }
  void finish() {
    if (up_) disconnect(connector_, listener_);
  }

 private:
  party& connector_;
  party& listener_;
  connection_plan plan_;
  bool up_ = false;
};

}  // namespace

void transfer_cells(party& ours, party& peer, report& out, bool quick) {
  std::uint64_t seed = 1;
  for (const bool crc : {true, false}) {
    for (const bool ours_connects : {true, false}) {
      if (quick && crc != ours_connects) continue;
      party& connector = ours_connects ? ours : peer;
      party& listener = ours_connects ? peer : ours;
      connection_plan plan{};
      plan.connector.crc = plan.listener.crc = crc;
      lazy_connection connection(connector, listener, plan);
      for (const bool ours_acts : {true, false}) {
        party& from = ours_acts ? ours : peer;
        party& to = ours_acts ? peer : ours;
        for (const transfer& kind : transfers) {
          for (const std::uint32_t size : sizes) {
            if (kind.inline_data && size > 64) continue;
            if (quick && size > 1 << 20) continue;
            if (kind.op == operation::send_invalidate && from.is_siw()) continue;  // see error_cells.cpp
            for (const std::uint32_t pieces : {1u, 6u}) {
              if (pieces > 1 && kind.op == operation::read) continue;  // a Read has one sink (protocol.md 4.5)
              for (const std::uint32_t depth : {1u, deep(size, quick)}) {
                if (depth == 1 && depth != deep(size, quick) && pieces > 1) continue;  // said by depth 128 already
                seed += 1000;
                const cell which{.group = "transfer",
                                 .op = kind.name,
                                 .direction = arrow(from, to),
                                 .crc = crc ? "on" : "off",
                                 .connector = connector.name(),
                                 .size = size,
                                 .sges = pieces,
                                 .depth = depth};
                connection.after(out.run(which, [&] {
                  connection.need();
                  return one_transfer(from, to, kind, size, pieces, depth, seed).run();
                }));
                if (deep(size, quick) == 1) break;
              }
            }
          }
        }
      }
      const cell closing{.group = "transfer",
                         .op = "close after all of this",
                         .direction = arrow(connector, listener),
                         .crc = crc ? "on" : "off"};
      if (out.wants(closing)) out.run(closing, [&] { return connection.finish(), std::string(); });
    }
  }
}

}  // namespace iwarp::interop
