#include "verbs/detail/context_state.hpp"

#include <optional>

#include "verbs/detail/connection.hpp"

namespace iwarp::verbs::detail {

context_state::context_state(const context_options& options, std::shared_ptr<tcp_glue::recording_file> recording)
    : manual_(options.progress == progress_mode::manual),
      recording_(std::move(recording)),
      regions_(!manual_ && options.domains > 1) {
  for (unsigned i = 0; i < (manual_ ? 1 : options.domains); ++i) {
    domains_.push_back(std::make_shared<domain>(manual_ ? options.io : nullptr, options.peer_timeout));
  }
  for (const auto& d : domains_) d->start();
}

context_state::~context_state() {
  for (const auto& d : domains_) d->shutdown();
}

std::unique_ptr<tcp_glue::transport> context_state::recorded(std::unique_ptr<tcp_glue::transport> fresh,
                                                             tcp_glue::opener who) const {
  return recording_ == nullptr ? std::move(fresh) : tcp_glue::record_traffic(std::move(fresh), recording_, who);
}

result<stag> context_state::revalidate(region& r) {
  // An engine that has found the region under its old key has still to look whether it is valid. With several domains
  // its pin is waited for, with one its lock.
  std::optional<domain::turn> alone;
  if (domains_.size() == 1) alone.emplace(*domains_.front());
  return regions_.revalidate(r);
}

void context_state::remove_region(region& r) noexcept {
  const const_bytes memory{r.address, r.length};
  regions_.remove(r);
  const region_table::retired_tables unread = regions_.take_retired();  // every domain's lock is taken below
  // From here on no engine finds it. What engines have queued from it, or begun into it, is found under their lock.
  for (const auto& d : domains_) {
    const domain::turn here(*d);
    const timestamp now = domain::now();
    // By index: a connection may leave the list on the way.
    for (std::size_t i = d->connections().size(); i != 0; --i) {
      if (i > d->connections().size()) continue;
      const std::shared_ptr<connection> c = d->connections()[i - 1];
      const bool was_ended = c->stream().ended();
      c->stream().detach(memory, now);
      if (c->stream().ended() != was_ended) c->service(now);
    }
  }
  regions_.recycle(r);
}

void context_state::revoke(domain& held, const_bytes memory) noexcept {
  held.detach_queued(memory);
  for (const auto& d : domains_) {
    if (d.get() != &held) d->revoke_from(held, memory);
  }
}

}  // namespace iwarp::verbs::detail
