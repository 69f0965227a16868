#include "tests/interop/matrix/control.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>

#include "tests/interop/matrix/layout.hpp"

namespace iwarp::interop {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr milliseconds answer_limit{20'000};
constexpr unsigned watchdog_seconds = 60;

}  // namespace

std::string to_hex(const std::string& octets) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : octets) {
    hex += digits[static_cast<unsigned char>(c) >> 4];
    hex += digits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

std::string from_hex(const std::string& hex) {
  std::string octets;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    octets += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return octets;
}

line_socket::line_socket(line_socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}

line_socket::~line_socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void line_socket::write_line(const std::string& line) {
  const std::string all = line + "\n";
  std::size_t done = 0;
  while (done < all.size()) {
    const ssize_t n = ::send(descriptor_, all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failure(std::string("control connection: ") + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

std::string line_socket::read_line(milliseconds limit) {
  const auto until = steady::now() + limit;
  while (true) {
    if (const auto end_of_line = received_.find('\n'); end_of_line != std::string::npos) {
      std::string line = received_.substr(0, end_of_line);
      received_.erase(0, end_of_line + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady::now()).count();
    pollfd wait{descriptor_, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) throw failure("no answer on the control connection in time");
    char buffer[65536];
    const ssize_t n = ::recv(descriptor_, buffer, sizeof buffer, 0);
    if (n <= 0) throw failure("the control connection has ended");
    received_.append(buffer, static_cast<std::size_t>(n));
  }
}

bool line_socket::wait_readable() {
  if (!received_.empty()) return true;
  char octet = 0;
  return ::recv(descriptor_, &octet, 1, MSG_PEEK) > 0;
}

void serve(end& here, line_socket& driver) {
  const auto index = [](const json& with) { return with.at("region").get<std::uint32_t>(); };
  const auto limit = [](const json& with) { return milliseconds(with.at("limit").get<int>()); };
  const std::map<std::string, std::function<json(const json&)>> commands{
      {"describe", [&](const json&) { return json(here.describe()); }},
      {"add_region",
       [&](const json& with) {
         return json(here.add_region(with.at("length"), with.at("rights"), with.at("stranger")));
       }},
      {"remove_region", [&](const json& with) { return here.remove_region(index(with)), json(); }},
      {"region_valid", [&](const json& with) { return json(here.region_valid(index(with))); }},
      {"fill",
       [&](const json& with) {
         const layout where = with.at("layout");
         fill(here.memory(where.region), where, with.at("seed"));
         return json();
       }},
      {"poison",
       [&](const json& with) { return poison(here.memory(index(with)), with.at("at"), with.at("length")), json(); }},
      {"verify",
       [&](const json& with) {
         const layout where = with.at("layout");
         return json(verify(here.memory(where.region), where, with.at("seed"), with.at("at"), with.at("length")));
       }},
      {"listen", [&](const json& with) { return json(here.listen(with.at("address"), with.at("wishes"))); }},
      {"open",
       [&](const json& with) { return here.open(with.at("queues"), with.at("address"), with.at("port")), json(); }},
      {"connect", [&](const json& with) { return here.connect(with.at("wishes")), json(); }},
      {"open_request", [&](const json& with) { return here.open_request(with.at("queues")), json(); }},
      {"accept", [&](const json& with) { return here.accept(with.at("wishes")), json(); }},
      {"reject", [&](const json& with) { return here.reject(from_hex(with.at("private_data"))), json(); }},
      {"wait_event", [&](const json& with) { return json(here.wait_event(limit(with))); }},
      {"wait_completions",
       [&](const json& with) { return json(here.wait_completions(with.at("count"), limit(with))); }},
      {"asynchronous_events", [&](const json&) { return json(here.asynchronous_events()); }},
      {"post_send", [&](const json& with) { return json(here.post_send(with)); }},
      {"post_receive", [&](const json& with) { return json(here.post_receive(with)); }},
      {"disconnect", [&](const json&) { return here.disconnect(), json(); }},
      {"abort", [&](const json&) { return here.abort(), json(); }},
      {"close", [&](const json&) { return here.close(), json(); }},
      {"kill", [&](const json&) { return ::raise(SIGKILL), json(); }},
  };
  while (driver.wait_readable()) {
    const json question = json::parse(driver.read_line(answer_limit));
    ::alarm(watchdog_seconds);  // an end that hangs in its library dies, and the driver goes on with a new one
    json answer;
    try {
      answer["ok"] = commands.at(question.at("do"))(question.at("with"));
    } catch (const std::exception& problem) {
      answer = {{"error", problem.what()}};
    }
    ::alarm(0);
    driver.write_line(answer.dump());
  }
}

remote_end::remote_end(line_socket socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {
  about_ = ask("describe");
}

json remote_end::ask(const char* what, json with, milliseconds limit) {
  socket_.write_line(json{{"do", what}, {"with", std::move(with)}}.dump());
  json answer;
  try {
    answer = json::parse(socket_.read_line(answer_limit + limit));
  } catch (const failure& problem) {
    throw failure(name_ + ", " + what + ": " + problem.what());
  }
  if (const auto error = answer.find("error"); error != answer.end()) {
    throw failure(name_ + ", " + what + ": " + error->get<std::string>());
  }
  return std::move(answer.at("ok"));
}

region remote_end::add_region(std::uint64_t length, const std::string& rights, bool stranger) {
  return ask("add_region", {{"length", length}, {"rights", rights}, {"stranger", stranger}});
}
void remote_end::remove_region(const region& which) { ask("remove_region", {{"region", which.index}}); }
bool remote_end::region_valid(const region& which) { return ask("region_valid", {{"region", which.index}}); }
void remote_end::fill(const layout& where, std::uint64_t seed) { ask("fill", {{"layout", where}, {"seed", seed}}); }
void remote_end::poison(const region& which, std::uint64_t at, std::uint64_t length) {
  ask("poison", {{"region", which.index}, {"at", at}, {"length", length}});
}
std::string remote_end::verify(const layout& where, std::uint64_t seed, std::uint64_t poisoned_at,
                               std::uint64_t poisoned_length) {
  return ask("verify", {{"layout", where}, {"seed", seed}, {"at", poisoned_at}, {"length", poisoned_length}});
}
std::uint16_t remote_end::listen(const std::string& address, const connection_wishes& wishes) {
  return ask("listen", {{"address", address}, {"wishes", wishes}});
}
void remote_end::open(const queue_options& queues, const std::string& address, std::uint16_t port) {
  ask("open", {{"queues", queues}, {"address", address}, {"port", port}});
}
void remote_end::connect(const connection_wishes& wishes) { ask("connect", {{"wishes", wishes}}); }
void remote_end::open_request(const queue_options& queues) { ask("open_request", {{"queues", queues}}); }
void remote_end::accept(const connection_wishes& wishes) { ask("accept", {{"wishes", wishes}}); }
void remote_end::reject(const std::string& private_data) { ask("reject", {{"private_data", to_hex(private_data)}}); }
event remote_end::wait_event(milliseconds limit) { return ask("wait_event", {{"limit", limit.count()}}, limit); }
std::vector<completion> remote_end::wait_completions(std::size_t count, milliseconds limit) {
  return ask("wait_completions", {{"count", count}, {"limit", limit.count()}}, limit);
}
std::vector<std::string> remote_end::asynchronous_events() { return ask("asynchronous_events"); }
std::string remote_end::post_send(const work& what) { return ask("post_send", what); }
std::string remote_end::post_receive(const work& what) { return ask("post_receive", what); }
void remote_end::disconnect() { ask("disconnect"); }
void remote_end::abort() { ask("abort"); }
void remote_end::close() { ask("close"); }
void remote_end::kill() {
  socket_.write_line(json{{"do", "kill"}, {"with", nullptr}}.dump());
  if (socket_.wait_readable()) throw failure(name_ + ", kill: it lives");
}

}  // namespace iwarp::interop
