// Internal to verbs.
// Waits for a descriptor that belongs to somebody else (a completion queue's, an event channel's) in an Asio executor.
// Threading: serialised by the owner.  Time: none.  I/O: none; the executor's context waits.
#pragma once

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <memory>

namespace iwarp::verbs::detail {

/// `Owner` has abandon(), called when the executor's context is destroyed while a wait is under way. Nothing else could
/// then break the circle "operation - handler - coroutine - connection - operation".
template <class Owner>
class descriptor_watch {
 public:
  using callback = void (Owner::*)();

  /// Throws boost::system::system_error when the context's reactor does not take the descriptor.
  descriptor_watch(const boost::asio::any_io_executor& io, int descriptor) : descriptor_(io, descriptor) {}
  /// release() and not close(): Asio takes a descriptor off its epoll only if it does not also close it, and this one
  /// stays open.
  ~descriptor_watch() { release(); }
  descriptor_watch(const descriptor_watch&) = delete;
  descriptor_watch& operator=(const descriptor_watch&) = delete;

  [[nodiscard]] bool waiting() const noexcept { return waiting_; }
  /// Calls (owner->*ready)() in the executor once the descriptor is readable, also if it is so already.
  void wait(std::shared_ptr<Owner> owner, callback ready) {
    waiting_ = true;
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read, handler(std::move(owner), ready));
  }
  /// The owner says so in its callback.
  void arrived() noexcept { waiting_ = false; }
  /// A wait under way ends without a call, unless the descriptor became readable before.
  void cancel() {
    waiting_ = false;
    descriptor_.cancel();
  }
  /// For good: a wait under way ends without a call.
  void release() {
    if (descriptor_.is_open()) descriptor_.release();
  }

 private:
  class handler {
   public:
    handler(std::shared_ptr<Owner> owner, callback ready) noexcept : owner_(std::move(owner)), ready_(ready) {}
    handler(handler&&) noexcept = default;
    handler& operator=(handler&&) = delete;
    ~handler() {
      if (owner_) owner_->abandon();
    }
    void operator()(const boost::system::error_code& error) {
      const auto owner = std::exchange(owner_, nullptr);
      if (!error) ((*owner).*ready_)();
    }

   private:
    std::shared_ptr<Owner> owner_;
    callback ready_;
  };

  boost::asio::posix::stream_descriptor descriptor_;
  bool waiting_ = false;
};

}  // namespace iwarp::verbs::detail
