// Internal to verbs.
// One asynchronous operation under way: a completion handler of any type, kept until there is something to tell it
// (the rules are those of Asio's "Requirements on asynchronous operations").
// Threading: serialised by the owner of the list an operation is in.  Time: none.  I/O: none.
#pragma once

#include <utility>
// <utility> comes first for Asio 1.74 under C++20.
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>

#include <memory>
#include <tuple>

#include "verbs/async_error.hpp"

namespace iwarp::verbs::detail {

/// `Result`: what there is to tell beside the error. Lives on its own: complete() or abandon() ends it.
template <class Result>
class async_operation : public boost::intrusive::list_base_hook<> {
 public:
  /// Frees the operation and posts its handler to the handler's executor; runs no code of the user's.
  virtual void complete(const boost::system::error_code& error, Result& result) = 0;
  /// Frees the operation and destroys its handler uncalled: the executor's context is being destroyed. That runs
  /// destructors of the user's, so no lock may be held.
  virtual void abandon() noexcept = 0;

 protected:
  ~async_operation() = default;
};

template <class Result>
using async_operation_list = boost::intrusive::list<async_operation<Result>>;

/// One operation that there is nothing to tell but the error.
template <class Result>
void refuse(async_operation<Result>* operation, const std::error_code& error) {
  Result nothing{};
  operation->complete(to_asio(error), nothing);
}
template <class Result>
void complete_all(async_operation_list<Result>& list, const boost::system::error_code& error) {
  while (!list.empty()) {
    auto& operation = list.front();
    list.pop_front();
    Result nothing{};
    operation.complete(error, nothing);
  }
}
template <class Result>
void abandon_all(async_operation_list<Result>& list) noexcept {
  list.clear_and_dispose([](async_operation<Result>* operation) { operation->abandon(); });
}

/// A handler with what it is to be called with. Keeps the handler's associations.
template <class Handler, class... Args>
class bound_handler {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
  using allocator_type = boost::asio::associated_allocator_t<Handler>;

  bound_handler(Handler&& handler, const boost::asio::any_io_executor& io, std::tuple<Args...>&& args)
      : executor_(boost::asio::get_associated_executor(handler, io)),
        handler_(std::move(handler)),
        args_(std::move(args)) {}

  void operator()() { std::apply(std::move(handler_), std::move(args_)); }
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return boost::asio::get_associated_allocator(handler_);
  }

 private:
  executor_type executor_;
  Handler handler_;
  std::tuple<Args...> args_;
};

/// `Arguments`: a function from error and Result to a tuple of what the handler takes after the error.
template <class Handler, class Result, class Arguments>
class handler_operation final : public async_operation<Result> {
 public:
  /// Allocated by the handler's associated allocator. `io`: where it is called if it has no executor of its own.
  static async_operation<Result>* make(Handler&& handler, const boost::asio::any_io_executor& io, Arguments arguments) {
    allocator memory(boost::asio::get_associated_allocator(handler));
    auto* place = std::allocator_traits<allocator>::allocate(memory, 1);
    // Moving a completion handler must not throw (Asio's requirement), so nothing between here and there leaks `place`.
    return ::new (static_cast<void*>(place)) handler_operation(std::move(handler), io, std::move(arguments));
  }

  void complete(const boost::system::error_code& error, Result& result) override {
    bound_handler bound(std::move(handler_), io_, std::tuple_cat(std::tuple(error), arguments_(error, result)));
    const auto io_work = std::move(io_work_);
    const auto handler_work = std::move(handler_work_);
    // Asio's rule: memory from the handler's allocator is given back before the handler is called.
    free(allocator(bound.get_allocator()));
    boost::asio::post(std::move(bound));
  }
  void abandon() noexcept override {
    const Handler handler(std::move(handler_));
    free(allocator(boost::asio::get_associated_allocator(handler)));
  }

 private:
  using allocator = typename std::allocator_traits<boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<
      handler_operation>;
  using handler_executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;

  handler_operation(Handler&& handler, const boost::asio::any_io_executor& io, Arguments&& arguments)
      : io_(io),
        io_work_(io),
        handler_work_(boost::asio::get_associated_executor(handler, io)),
        handler_(std::move(handler)),
        arguments_(std::move(arguments)) {}
  ~handler_operation() = default;

  void free(allocator memory) noexcept {
    this->~handler_operation();
    std::allocator_traits<allocator>::deallocate(memory, this, 1);
  }

  boost::asio::any_io_executor io_;
  // Both contexts have work as long as the operation is under way, so that their run() does not return.
  boost::asio::executor_work_guard<boost::asio::any_io_executor> io_work_;
  boost::asio::executor_work_guard<handler_executor> handler_work_;
  Handler handler_;
  Arguments arguments_;
};

template <class Result, class Handler, class Arguments>
async_operation<Result>* make_operation(Handler&& handler, const boost::asio::any_io_executor& io,
                                        Arguments arguments) {
  return handler_operation<std::decay_t<Handler>, Result, Arguments>::make(std::forward<Handler>(handler), io,
                                                                           std::move(arguments));
}

}  // namespace iwarp::verbs::detail
