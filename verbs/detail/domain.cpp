#include "verbs/detail/domain.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "verbs/detail/connection.hpp"
#include "verbs/detail/queue_pair_state.hpp"

namespace iwarp::verbs::detail {

domain::domain(boost::asio::io_context* io, std::chrono::seconds peer_timeout)
    : peer_timeout_(peer_timeout),
      own_(io == nullptr ? std::make_unique<boost::asio::io_context>() : nullptr),
      io_(io == nullptr ? own_.get() : io) {}

domain::~domain() = default;

void domain::start() {
  if (manual()) return;
  work_.emplace(io_->get_executor());
  thread_ = std::thread([this] { run(); });
}

void domain::shutdown() {
  stopping_.store(true);
  if (thread_.joinable()) {
    io_->stop();
    {
      const std::lock_guard lock(sleep_mutex_);
      sleep_.notify_all();
    }
    thread_.join();
  }
  {
    const turn here(*this);
    // What still lingers has sent all it had, or cannot any more.
    for (const auto& c : connections_) c->drop();
    connections_.clear();
  }
  if (own_ != nullptr) {
    work_.reset();
    own_->restart();
    own_->poll();  // handlers of waits that were given up let go of their connections
  }
}

// Work is published, then the lock is tried; the lock is released, then published work is looked for. Both sides are
// sequentially consistent, so one of them sees the other's.
void domain::publish(queue_pair_state& qp) noexcept {
  if (qp.published.exchange(true)) return;
  queue_pair_state* top = published_.load(std::memory_order_relaxed);
  do {
    qp.next_published = top;
  } while (!published_.compare_exchange_weak(top, &qp));
}

void domain::drain_published() noexcept {
  queue_pair_state* qp = published_.exchange(nullptr);
  while (qp != nullptr) {
    queue_pair_state* const next = qp->next_published;
    qp->published.store(false);
    qp->service(*this);
    qp = next;
  }
}

void domain::bury(connection* c) noexcept {
  connection* top = buried_.load(std::memory_order_relaxed);
  do {
    c->next_buried = top;
  } while (!buried_.compare_exchange_weak(top, c));
  run_published();
}

void domain::drain_buried() noexcept {
  connection* c = buried_.exchange(nullptr);
  while (c != nullptr) {
    connection* const next = c->next_buried;
    delete c;
    c = next;
  }
}

void domain::drain_revocations() noexcept {
  revocation* wanted = revocations_.exchange(nullptr);
  while (wanted != nullptr) {
    revocation* const next = wanted->next;
    detach_queued(wanted->memory);
    wanted->done.store(true);  // gone from here on
    wanted = next;
  }
}

void domain::revoke_from(domain& held, const_bytes memory) noexcept {
  revocation wanted{.memory = memory};
  revocation* top = revocations_.load(std::memory_order_relaxed);
  do {
    wanted.next = top;
  } while (!revocations_.compare_exchange_weak(top, &wanted));
  while (!wanted.done.load()) {
    if (lock_.try_lock()) {
      drain_revocations();
      lock_.unlock();
      // Others may have left work to us that must not be done while `held` is.
      if (work_left()) run_published_later();
    } else {
      held.drain_revocations();
      std::this_thread::yield();
    }
  }
}

void domain::run_published_later() {
  boost::asio::post(*io_, [this] { run_published(); });
}

void domain::do_work_left() noexcept {
  if (revocations_.load() != nullptr) drain_revocations();
  if (published_.load() != nullptr) drain_published();
  if (buried_.load() != nullptr) drain_buried();
}

void domain::leave() noexcept {
  for (;;) {
    do_work_left();
    lock_.unlock();
    if (!work_left() || !lock_.try_lock()) return;
  }
}

void domain::poll() noexcept {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!manual() && !polling_.load(std::memory_order_relaxed)) {
    const std::uint32_t polls = polls_since_wait_.load(std::memory_order_relaxed) + 1;
    polls_since_wait_.store(polls, std::memory_order_relaxed);
    if (polls >= polls_to_take_over) polling_.store(true, std::memory_order_relaxed);
  }
  bool ask_kernel = false;
  if (lock_.try_lock()) {
    do_work_left();
    const std::size_t count = connections_.size();
    ask_kernel = count > direct_connections && !manual();
    if (!ask_kernel && count != 0) {
      const timestamp at = now();
      // With manual progress and very many connections each poll looks at some of them, in turn.
      for (std::size_t i = std::min<std::size_t>(count, 2 * direct_connections); i != 0 && !connections_.empty(); --i) {
        connections_[next_polled_++ % connections_.size()]->poll(at);  // may leave the list
      }
    }
    leave();
  }
  if (ask_kernel) io_->poll();
}

void domain::stop_polling() noexcept {
  polls_since_wait_.store(0, std::memory_order_relaxed);
  if (!polling_.load(std::memory_order_relaxed)) return;
  {
    const turn here(*this);
    polling_.store(false);
    watching_ = false;
    arm_all();
  }
  const std::lock_guard lock(sleep_mutex_);
  sleep_.notify_all();
}

void domain::arm_all() noexcept {
  for (const auto& c : connections_) c->arm();
}

void domain::add(std::shared_ptr<connection> c) {
  c->index_in_domain = connections_.size();
  connections_.push_back(std::move(c));
  if (connections_.size() == direct_connections + 1) arm_all();  // from here on pollers ask the kernel
}

void domain::remove(connection& c) noexcept {
  const std::size_t at = c.index_in_domain;
  if (at >= connections_.size() || connections_[at].get() != &c) return;
  connections_[at].swap(connections_.back());
  connections_[at]->index_in_domain = at;
  connections_.pop_back();
}

// The background thread. While the application polls it sleeps outside epoll: every octet that arrives would wake it.
//
//   serving --the application polls--> watching --it stopped, or waits for a descriptor--> serving
//
// While serving, every connection that wants octets is armed; arm() relies on watching_ alone. So from the moment the
// application begins to poll until the thread has seen it, both look after the connections, and nothing gets lost.
void domain::run() {
  while (!stopping_.load()) {
    if (polling_.load()) {
      watch_pollers();
    } else {
      io_->run_one();
    }
  }
}

void domain::watch_pollers() {
  {
    const turn here(*this);
    if (!polling_.load()) return;
    watching_ = true;
  }
  const std::uint32_t seen = polls_.load(std::memory_order_relaxed);
  {
    std::unique_lock lock(sleep_mutex_);
    sleep_.wait_for(lock, poller_watch, [this] { return stopping_.load() || !polling_.load(); });
  }
  if (polls_.load(std::memory_order_relaxed) == seen) stop_polling();
  io_->poll();  // accepts, timers
}

}  // namespace iwarp::verbs::detail
