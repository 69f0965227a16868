// Internal to verbs.
// The state behind a context, and the protection domain.
// Threading: every function from any thread.  Time: none.  I/O: none.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "tcp_glue/recording_transport.hpp"
#include "verbs/context.hpp"
#include "verbs/detail/domain.hpp"
#include "verbs/detail/region_table.hpp"

namespace iwarp::verbs::detail {

class context_state {
 public:
  /// `recording` may be null.
  context_state(const context_options& options, std::shared_ptr<tcp_glue::recording_file> recording);
  ~context_state();

  [[nodiscard]] bool manual() const noexcept { return manual_; }
  [[nodiscard]] boost::asio::io_context& io() noexcept { return domains_.front()->io(); }
  /// Connections spread over the domains in turn.
  std::shared_ptr<domain> next_domain() noexcept {
    return domains_[next_domain_.fetch_add(1, std::memory_order_relaxed) % domains_.size()];
  }
  [[nodiscard]] const std::vector<std::shared_ptr<domain>>& domains() const noexcept { return domains_; }
  /// The transport to use for a fresh connection: `fresh`, recorded if this context records.
  std::unique_ptr<tcp_glue::transport> recorded(std::unique_ptr<tcp_glue::transport> fresh, tcp_glue::opener who) const;
  [[nodiscard]] region_table& regions() noexcept { return regions_; }
  /// 1..2^24-1, reused only after all of them.
  std::uint32_t next_qp_number() noexcept {
    return next_qp_number_.fetch_add(1, std::memory_order_relaxed) % 0xFFFFFF + 1;
  }
  /// Error: wrong_state while the region is valid.
  result<stag> revalidate(region& r);
  /// The region leaves: no engine touches its memory when this returns.
  void remove_region(region& r) noexcept;
  /// Under the lock of `held`. `memory` was invalidated: octets of it that any connection has queued by reference are
  /// copied, so that from now on nothing reads it. A region is rarely shared by domains, and queued in two of them.
  void revoke(domain& held, const_bytes memory) noexcept;

 private:
  const bool manual_;
  const std::shared_ptr<tcp_glue::recording_file> recording_;
  region_table regions_;
  std::vector<std::shared_ptr<domain>> domains_;
  std::atomic<unsigned> next_domain_{0};
  std::atomic<std::uint32_t> next_qp_number_{0};
};

struct protection_domain_state {
  std::shared_ptr<context_state> context;
};

}  // namespace iwarp::verbs::detail
