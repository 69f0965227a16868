#include "tests/interop/matrix/party.hpp"

namespace iwarp::interop {

party::party(std::string name, std::string provider, std::string address, std::function<line_socket()> start)
    : name_(std::move(name)), provider_(std::move(provider)), address_(std::move(address)), start_(std::move(start)) {}

remote_end& party::end() {
  if (!end_) {
    try {
      end_ = std::make_unique<remote_end>(start_(), name_);
    } catch (const failure& problem) {
      throw party_lost{name_ + " is lost: " + problem.what()};
    }
    source_ = end_->add_region(region_size, "r");
    sink_ = end_->add_region(region_size, "w");
    end_->poison(sink_, 0, region_size);
  }
  return *end_;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw failure(what);
}

const event& require_kind(const event& e, const std::string& kind, const party& where) {
  require(e.kind == kind, where.name() + ": event " + e.kind + " instead of " + kind +
                              (e.reason.empty() ? "" : " (" + e.reason + "; " + e.text + ")"));
  return e;
}

event ask_for_connection(party& connector, party& listener, const connection_plan& plan) {
  const std::uint16_t port = listener->listen(listener.address(), plan.listener);
  connector->open(plan.queues, listener.address(), port);
  connector->connect(plan.connector);
  return require_kind(listener->wait_event(), "connect_request", listener);
}

connected establish(party& connector, party& listener, const connection_plan& plan,
                    const std::function<void()>& before) {
  connected all;
  all.request = ask_for_connection(connector, listener, plan);
  listener->open_request(plan.queues);
  if (before) before();
  listener->accept(plan.listener);
  all.at_connector = require_kind(connector->wait_event(), "established", connector);
  all.at_listener = require_kind(listener->wait_event(), "established", listener);
  return all;
}

void send_first(party& connector) {
  const std::string problem = connector->post_send({.op = operation::write, .local = {.pieces = 0}});
  require(problem.empty(), connector.name() + ", posting a first Write: " + problem);
  const auto done = connector->wait_completions(1);
  require(done.size() == 1 && done[0].status == "success", connector.name() + ": the first Write");
}

void disconnect(party& by, party& other) {
  by->disconnect();
  require_kind(other->wait_event(), "disconnected", other);
  require_kind(by->wait_event(), "disconnected", by);
}

void drop(party& a, party& b) noexcept {
  for (party* p : {&a, &b}) {
    try {
      p->end().close();
      while (p->end().wait_event(milliseconds(0)).kind != "none") {
      }
    } catch (const std::exception&) {
      p->forget();
    }
  }
}

}  // namespace iwarp::interop
