// Internal to tests/captures.
// The consumer of a stream that replays one side of a recorded connection: memory at the addresses and under the STags
// that the recorded process used, and receives without end.
// Threading: as rdmap::consumer.  Time: none.  I/O: none.
#pragma once

#include "rdmap/consumer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace iwarp::captures {

class replay_consumer final : public rdmap::consumer {
 public:
  /// STag of memory whose elements have real addresses. Index 0 is never assigned (VERBS s7.2), so none is like it.
  static constexpr stag own_key{1};
  static constexpr std::uint32_t receive_size = 128 * 1024;

  /// The region under `key` reaches over [offset, offset + size), offsets as on the wire.
  void cover(stag key, std::uint64_t offset, std::size_t size) {
    region& r = regions_.try_emplace(key, region{offset, {}}).first->second;
    const std::uint64_t begin = std::min(r.base, offset);
    const std::uint64_t end = std::max(r.base + r.octets.size(), offset + size);
    r.base = begin;
    r.octets.resize(end - begin);  // called before anything is stored
  }
  /// Memory of a region; empty when the region does not reach so far.
  [[nodiscard]] mutable_bytes memory(stag key, std::uint64_t offset, std::size_t size) noexcept {
    const auto found = regions_.find(key);
    if (found == regions_.end()) return {};
    region& r = found->second;
    if (offset < r.base || offset - r.base > r.octets.size() || size > r.octets.size() - (offset - r.base)) return {};
    return mutable_bytes(r.octets).subspan(offset - r.base, size);
  }
  /// Lets one more Send come in.
  void post_receive() noexcept { ++posted_; }

  struct received_message {
    rdmap::receive_result result;
    std::vector<std::byte> octets;
  };
  std::vector<received_message> received;
  std::vector<rdmap::wr_status> sent;
  std::vector<stag> invalidated;

 private:
  struct region {
    std::uint64_t base;
    std::vector<std::byte> octets;
  };
  struct receive {
    std::vector<std::byte> buffer;
    rdmap::sge element;
    rdmap::receive_slot slot;
  };

  rdmap::access_result access_remote(stag key, std::uint64_t offset, std::size_t size,
                                     rdmap::remote_right) noexcept override {
    const mutable_bytes bytes = memory(key, offset, size);
    if (bytes.size() != size) return {.error = rdmap::access_error::out_of_bounds};
    return {.bytes = bytes};
  }
  rdmap::access_result access_local(stag key, void* address, std::size_t size, bool) noexcept override {
    if (key == own_key) return {.bytes = as_mutable_bytes(address, size)};
    return access_remote(key, reinterpret_cast<std::uintptr_t>(address), size, rdmap::remote_right::write);
  }
  void release(void*) noexcept override {}
  /// The recorded STags were valid when the peer named them; each may be named once.
  rdmap::access_error invalidate_remote(stag key) noexcept override {
    if (std::ranges::count(invalidated, key) != 0) return rdmap::access_error::invalid_stag;
    invalidated.push_back(key);
    return rdmap::access_error::none;
  }
  rdmap::access_error invalidate_local(stag) noexcept override { return rdmap::access_error::cannot_invalidate; }

  rdmap::receive_slot* take_receive() noexcept override {
    if (posted_ == 0) return nullptr;
    --posted_;
    receive& r = receives_.emplace_back();
    r.buffer.resize(receive_size);
    r.element = {.address = r.buffer.data(), .length = receive_size, .key = own_key};
    r.slot = {.id = receives_.size(), .elements = {&r.element, 1}, .size = receive_size};
    return &r.slot;
  }
  void send_completed(const rdmap::work_request&, rdmap::wr_status status) noexcept override { sent.push_back(status); }
  void receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& result) noexcept override {
    const auto* octets = static_cast<const std::byte*>(slot.elements[0].address);
    received.push_back({result, {octets, octets + result.size}});
  }

  std::map<stag, region> regions_;
  std::deque<receive> receives_;
  std::size_t posted_ = 0;
};

}  // namespace iwarp::captures
