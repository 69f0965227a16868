#include "tools/dump/analyser.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/dump/link_layer.hpp"

namespace iwarp::dump {
namespace {

bool before(const endpoint& a, const endpoint& b) noexcept {
  if (a.address != b.address) return a.address < b.address;
  return a.port < b.port;
}

}  // namespace

struct analyser::tracked {
  tracked(const reassembly_limits& limits, memory_use& memory, const tcp_segment& first, std::uint64_t number,
          bool forced, event_sink& out, summary_event& totals)
      : tcp(limits, memory, first),
        analysis(std::make_unique<stream_analysis>(number, tcp, memory, forced, out, totals)) {}
  connection tcp;
  std::unique_ptr<stream_analysis> analysis;  // none: over, or known not to be iWARP
};

namespace {

class nobody final : public octet_consumer {
 public:
  void on_octets(side, std::uint64_t, const_bytes, frame_ref) override {}
  void on_hole(side, std::uint64_t, std::uint64_t, hole_kind, frame_ref) override {}
  void on_overlap(side, std::uint64_t, std::uint64_t, frame_ref) override {}
  void on_end(side, ending, frame_ref) override {}
};

nobody silent;  // has no state

}  // namespace

std::size_t analyser::ends_hash::operator()(const ends& e) const noexcept {
  const auto hash = [](const endpoint& p) {
    const std::string_view text(reinterpret_cast<const char*>(p.address.data()), p.address.size());
    return std::hash<std::string_view>{}(text)*31 + p.port;
  };
  return hash(e.low) * 1'000'003 ^ hash(e.high);
}

analyser::analyser(analyser_options options, event_sink& out)
    : options_(std::move(options)), out_(out), latest_(by_use_.end()) {}

analyser::~analyser() = default;

analyser::tracked& analyser::find(const tcp_segment& s) {
  ends key{s.from, s.to};
  if (before(s.to, s.from)) std::swap(key.low, key.high);
  if (latest_ != by_use_.end() && latest_->first == key) return *latest_->second;
  const auto found = known_.find(key);
  if (found != known_.end()) {
    by_use_.splice(by_use_.end(), by_use_, found->second);
    latest_ = found->second;
    return *latest_->second;
  }
  if (known_.size() >= options_.limits.connections) {
    close(*by_use_.front().second);
    known_.erase(by_use_.front().first);
    by_use_.pop_front();
  }
  by_use_.emplace_back(key, nullptr);
  latest_ = std::prev(by_use_.end());
  known_.emplace(key, latest_);
  const bool forced = options_.ports.contains(s.from.port) || options_.ports.contains(s.to.port);
  latest_->second =
      std::make_unique<tracked>(options_.limits, memory_, s, totals_.tcp_streams++, forced, out_, totals_);
  return *latest_->second;
}

void analyser::close(tracked& t) {
  if (t.analysis) t.tcp.finish(last_, *t.analysis);
  t.analysis.reset();
}

void analyser::add(const packet& p) {
  ++totals_.frames;
  last_ = p.frame;
  const auto ip = ip_.read(ip_packet_of(p.link_type, p.octets));
  if (!ip) return;
  const auto segment = parse_segment(*ip, p.frame);
  if (!segment) return;
  if (!options_.ports.empty() && !options_.ports.contains(segment->from.port) &&
      !options_.ports.contains(segment->to.port)) {
    return;
  }
  tracked* t = &find(*segment);
  const auto consumer = [&]() -> octet_consumer& {
    return t->analysis ? static_cast<octet_consumer&>(*t->analysis) : silent;
  };
  if (t->tcp.add(*segment, consumer()) == connection::verdict::another_connection) {
    close(*t);
    const bool forced = options_.ports.contains(segment->from.port) || options_.ports.contains(segment->to.port);
    latest_->second =
        std::make_unique<tracked>(options_.limits, memory_, *segment, totals_.tcp_streams++, forced, out_, totals_);
    t = latest_->second.get();
    (void)t->tcp.add(*segment, consumer());
  }
  if (!t->analysis) return;
  if (t->analysis->hopeless()) {
    t->tcp.ignore();
    t->analysis.reset();
  } else if (t->tcp.over()) {
    t->analysis.reset();
  }
}

summary_event analyser::finish() {
  // In the order of their numbers, not of their last frames.
  std::vector<tracked*> left;
  for (auto& [key, t] : by_use_) {
    if (t->analysis) left.push_back(t.get());
  }
  std::ranges::sort(left, {}, [](const tracked* t) { return t->analysis->number(); });
  for (tracked* t : left) close(*t);
  out_.on(totals_);
  return totals_;
}

}  // namespace iwarp::dump
