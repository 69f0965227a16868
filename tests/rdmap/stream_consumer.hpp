// Internal to tests.
// A consumer of rdmap::stream that trusts nothing: regions with guard octets around them, protection domains and
// rights, a receive queue, and a ledger that checks each completion: once, in order.
// Threading: as the stream's.  Time: none.  I/O: none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rdmap/consumer.hpp"
#include "tests/rdmap/stream_wire.hpp"

namespace iwarp::stream_test {

struct region_rights {
  bool local_write = true;
  bool remote_read = false;
  bool remote_write = false;
  bool invalidatable = true;
  int domain = 1;  // the stream's is 1
};

class region {
 public:
  region(std::size_t size, stag key_of, region_rights rights_of, std::uint64_t base_of);

  stag key;
  region_rights rights;
  std::uint64_t base;  ///< TO of the first octet
  bool valid = true;
  int pins = 0;

  [[nodiscard]] mutable_bytes bytes() noexcept { return mutable_bytes{storage_}.subspan(guard_size, size_); }
  [[nodiscard]] std::byte* data() noexcept { return storage_.data() + guard_size; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The octets around the region are as they were.
  [[nodiscard]] bool guards_intact() const;
  [[nodiscard]] rdmap::sge element(std::size_t offset, std::size_t length) noexcept {
    return {data() + offset, static_cast<std::uint32_t>(length), key};
  }
  [[nodiscard]] octets copy(std::size_t offset, std::size_t length) {
    return {data() + offset, data() + offset + length};
  }
  [[nodiscard]] octets copy() { return copy(0, size_); }

 private:
  static constexpr std::size_t guard_size = 64;
  std::size_t size_;
  octets storage_;
};

class test_consumer final : public rdmap::consumer {
 public:
  struct receive_done {
    std::uint64_t id;
    rdmap::receive_result result;
  };

  test_consumer();
  ~test_consumer();

  /// Key 0: the next free one. Base 0: the address.
  region& add(std::size_t size, region_rights rights = {}, std::uint32_t key = 0, std::uint64_t base = 0);
  [[nodiscard]] bool guards_intact() const;
  [[nodiscard]] int pins() const;

  /// Returns the id: 0, 1, 2 ...
  std::uint64_t post_receive(std::vector<rdmap::sge> elements);
  std::uint64_t post_receive(region& where) { return post_receive({where.element(0, where.size())}); }
  /// Posts a receive that completed once more, without allocating.
  void repost(std::uint64_t id) noexcept;

  // The ledger
  std::vector<rdmap::wr_status> sends;  ///< by running index
  std::vector<receive_done> receives;   ///< in order of completion
  [[nodiscard]] std::size_t receives_taken() const noexcept { return taken_; }
  [[nodiscard]] std::size_t receives_posted() const noexcept { return posted_.size(); }
  bool remote_read_enabled = true;  // of the QP

  // rdmap::consumer
  rdmap::access_result access_remote(stag key, std::uint64_t offset, std::size_t size,
                                     rdmap::remote_right right) noexcept override;
  rdmap::access_result access_local(stag key, void* address, std::size_t size, bool write) noexcept override;
  void release(void* pin) noexcept override;
  rdmap::access_error invalidate_remote(stag key) noexcept override;
  rdmap::access_error invalidate_local(stag key) noexcept override;
  rdmap::receive_slot* take_receive() noexcept override;
  void send_completed(const rdmap::work_request& request, rdmap::wr_status status) noexcept override;
  void receive_completed(rdmap::receive_slot& slot, const rdmap::receive_result& result) noexcept override;

 private:
  struct posted_receive {
    std::vector<rdmap::sge> elements;
    rdmap::receive_slot slot;
  };
  [[nodiscard]] region* find(stag key) noexcept;

  std::vector<std::unique_ptr<region>> regions_;
  std::vector<std::unique_ptr<posted_receive>> posted_;
  std::vector<std::uint64_t> queue_;  // ids in the order they were posted
  std::size_t taken_ = 0;
  std::uint32_t next_index_ = 0x100;
};

}  // namespace iwarp::stream_test
