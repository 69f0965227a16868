// Internal to verbs.
// Registered memory by STag. Read by every domain without a lock, on every segment; written under one.
// A region object is never freed while the table lives, so that a reader may pin first and check afterwards.
// Threading: find() and pins from any thread; the rest is serialised inside.  Time: none.  I/O: OpenSSL's random
// source.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "rdmap/consumer.hpp"
#include "verbs/access.hpp"

namespace iwarp::verbs::detail {

struct protection_domain_state;

struct region {
  std::atomic<std::uint32_t> key{0};   ///< its STag; 0 while the object is not in use
  std::atomic<bool> valid{false};      ///< false after an invalidate
  std::atomic<std::uint32_t> pins{0};  ///< engines that are copying to or from it now
  // Fixed while key is not 0.
  std::byte* address = nullptr;
  std::size_t length = 0;
  access rights = access::local_read;
  const protection_domain_state* pd = nullptr;
};

class region_table {
 public:
  /// `several_domains`: engines of more than one domain read it. Under one domain's lock alone nobody copies beside
  /// anybody, so pins would count to no end: they cost a tenth of a short FPDU's time.
  explicit region_table(bool several_domains);

  /// Registers; the STag's index and key are random. Errors: too_many; invalid_argument when the random source fails.
  result<region*> insert(mutable_bytes memory, access rights, const protection_domain_state* pd);
  /// Takes it out of the table. No new pin succeeds afterwards; waits for the ones there are. Not recycled yet.
  void remove(region& r) noexcept;
  /// The object may be used for another registration: nothing of the old one is queued anywhere.
  void recycle(region& r);
  /// Makes an invalidated region valid under a fresh key. Error: wrong_state.
  result<stag> revalidate(region& r);

  /// The region of `key`, pinned, valid or not; null when there is none.
  [[nodiscard]] region* pin(stag key) noexcept;
  void unpin(region& r) const noexcept {
    if (several_domains_) r.pins.fetch_sub(1);
  }
  /// After valid was cleared: waits until nobody copies any more. A pin lasts no longer than one copy.
  static void drain(const region& r, std::uint32_t own_pins = 0) noexcept;

  /// Octets of the region for a peer's access. Checks valid, pd, right, bounds in that order (protocol.md 4.4).
  static rdmap::access_result check_remote(region& r, const protection_domain_state* pd, access right,
                                           std::uint64_t offset, std::size_t size) noexcept;
  static rdmap::access_result check_local(region& r, const protection_domain_state* pd, const void* address,
                                          std::size_t size, bool write) noexcept;

  /// Open addressing by the STag's index. Defined here so that retired tables can be destroyed.
  struct slot {
    std::atomic<std::uint32_t> index{0};  // 0: never used; removed_index: removed
    std::atomic<region*> where{nullptr};
  };
  struct table {
    explicit table(std::size_t size) : slots(size), mask(size - 1) {}
    std::vector<slot> slots;
    std::size_t mask;
  };
  using retired_tables = std::vector<std::unique_ptr<table>>;
  /// Tables that grew out of use. Engines may still be reading them: they may be destroyed once every domain's lock was
  /// taken and released after this call.
  [[nodiscard]] retired_tables take_retired() noexcept;

 private:
  static std::size_t hash(std::uint32_t index) noexcept { return (index * 0x9E3779B1u) >> 7; }
  slot* find_slot(table& t, std::uint32_t index) noexcept;
  void put(table& t, std::uint32_t index, region* r) noexcept;
  void grow();

  const bool several_domains_;
  std::mutex mutex_;
  std::atomic<table*> current_;
  std::unique_ptr<table> owned_;
  retired_tables retired_;
  std::size_t used_ = 0;  // slots that are not 0, removed ones included
  std::size_t live_ = 0;
  std::deque<region> objects_;
  std::vector<region*> free_;
};

}  // namespace iwarp::verbs::detail
