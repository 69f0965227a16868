#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "tools/common/failure.hpp"
#include "tools/common/session.hpp"
#include "tools/copy/commands.hpp"
#include "tools/copy/file_tree.hpp"
#include "tools/copy/mapped_window.hpp"
#include "tools/copy/pending_file.hpp"
#include "tools/copy/sha256.hpp"

namespace iwarp::tools::copy {
namespace {

constexpr std::uint32_t chunk_size = 1u << 20;  // of one Read or Write: keeps the wire shared fairly
constexpr std::uint32_t max_chunks = static_cast<std::uint32_t>(window_size / chunk_size);
constexpr auto patience = std::chrono::seconds(60);  // for the client's next message
constexpr std::uint64_t last_chunk_id = 1;
constexpr const char* shortened_text = "the file was shortened by somebody else while it was copied";

/// One client: one file.
class client_server {
 public:
  client_server(const verbs::context& where, int root, bool read_only)
      : root_(root),
        read_only_(read_only),
        session_(where, {.max_send_requests = max_chunks + 8,
                         .max_receive_requests = max_windows + 2,
                         .max_send_sge = 1,
                         .max_receive_sge = 1,
                         .max_inline = outcome::octets,
                         .remote_read = false,
                         .remote_write = false}),
        incoming_(session_, max_windows + 2, max_message) {}

  void run(const verbs::connection_event& request) {
    incoming_.post_all();
    session_.accept(request);
    try {
      serve_request(next_message<copy::request>());
    } catch (const interrupted&) {
      throw;
    } catch (const failure& problem) {
      // A missing page that the kernel meets itself, inside sendmsg(2), ends the connection instead of raising SIGBUS.
      if (source_ && shortened(file_, size_)) throw failure(fmt::format("get \"{}\": {}", name_, shortened_text));
      if (dynamic_cast<const peer_closed*>(&problem) != nullptr)
        throw failure("the client went away in the middle of a copy");
      throw;
    }
    // The client closes: its last word may still be on the way.
    for (;;) session_.next(patience);
  }

 private:
  // What ends a copy because of our file, told to the client and to the operator.
  struct refusal {
    copy::status status;
    std::string text;
  };

  void serve_request(const copy::request& wanted) {
    name_ = wanted.name;
    put_ = wanted.op == operation::put;
    if (const auto refused = open(wanted)) {
      send(answer{.status = refused->status});
      give_up(*refused);
    }
    send(answer{.status = status::ok, .size = put_ ? 0 : size_});
    while (position_ < size_)
      if (const auto refused = move_window(next_message<window>())) {
        send(window_done{.status = refused->status});
        give_up(*refused);
      }
    const auto word = next_message<finish>();
    const auto refused = conclude(word);
    send(outcome{.status = refused ? refused->status : status::ok, .size = size_, .digest = digest_});
    if (refused) give_up(*refused);
  }

  std::optional<refusal> open(const copy::request& wanted) {
    if (put_ && read_only_) return refusal{status::read_only, "put refused: the folder is served read-only"};
    auto where = locate(root_, wanted.name);
    if (!where) return refuse(where.error());
    if (put_) {
      auto made = pending_file::create(*std::move(where), wanted.size);
      if (!made) return refuse(made.error());
      pending_.emplace(*std::move(made));
      size_ = wanted.size;
      file_ = pending_->descriptor();
    } else {
      auto opened = open_regular(where->folder.get(), where->name, false);
      if (!opened) return refuse(opened.error());
      source_ = std::move(opened->descriptor);
      size_ = opened->size;
      file_ = source_.get();
      if (size_ > max_file_size) return refuse(std::make_error_code(std::errc::file_too_large));
    }
    return std::nullopt;
  }

  std::optional<refusal> move_window(const window& offered) {
    // Windows come in the order of the file and leave nothing out.
    if (offered.offset != position_ || offered.length != window_length(size_, position_))
      throw failure("the client offered a window that is not the next one of the file");
    mapped_window mapped;
    if (auto made = mapped_window::map(file_, offered.offset, offered.length, put_))
      mapped = *std::move(made);
    else
      return refuse(made.error());
    const auto region = put_ ? verbs::memory_region::create(session_.pd(), mapped.octets(), verbs::access::local_write)
                             : verbs::memory_region::create_read_only(session_.pd(), mapped.octets());
    if (!region) return refuse(region.error());
    start_chunks(offered, *region);
    // While the stack moves this window, its predecessor is hashed.
    hash_previous();
    wait_chunks();
    if (mapped.damaged()) return refusal{status::changed, shortened_text};
    send(window_done{.status = status::ok, .offset = offered.offset, .length = offered.length});
    position_ += offered.length;
    previous_ = std::move(mapped);
    return std::nullopt;
  }

  void start_chunks(const window& offered, const verbs::memory_region& region) {
    elements_.clear();
    requests_.clear();
    elements_.reserve(max_chunks);
    for (std::uint32_t at = 0; at < offered.length; at += chunk_size) {
      const std::uint32_t length = std::min(chunk_size, offered.length - at);
      elements_.push_back(region.element(at, length));
      const bool last = at + length == offered.length;
      requests_.push_back({.id = last ? last_chunk_id : 0,
                           .op = put_ ? verbs::opcode::rdma_read : verbs::opcode::rdma_write,
                           .signaled = last,
                           .elements = {&elements_.back(), 1},
                           .remote = {.key = offered.key, .offset = offered.address + at}});
    }
    session_.post(requests_);
  }

  void wait_chunks() {
    for (;;) {
      const auto done = session_.next(patience);
      if (done.kind == verbs::completion_kind::receive)
        arrived_.push_back(done);  // the client's next window
      else if (done.id == last_chunk_id)
        return;
    }
  }

  void hash_previous() {
    if (previous_.octets().empty()) return;
    hash_.add(previous_.octets());
    damaged_ = damaged_ || previous_.damaged();
    previous_ = {};
  }

  std::optional<refusal> conclude(const finish& word) {
    hash_previous();
    digest_ = hash_.finish();
    if (damaged_) return refusal{status::changed, shortened_text};
    if (word.size != size_) throw failure("the client ended with another size than it began with");
    if (put_) {
      if (word.digest != digest_) return refusal{status::checksum_mismatch, "checksum mismatch: the put is dropped"};
      if (auto done = pending_->commit(); !done) return refuse(done.error());
    } else if (word.digest != digest_) {
      // The client tells it as its own failure; here it is worth a line.
      return refusal{status::changed, "checksum mismatch: the file changed while it was copied"};
    }
    return std::nullopt;
  }

  refusal refuse(std::error_code error) const { return {status_of(error), tools::describe(error)}; }

  [[noreturn]] void give_up(const refusal& refused) {
    const std::string text = fmt::format("{} \"{}\": {}", put_ ? "put" : "get", name_, refused.text);
    pending_.reset();
    // The client reads the status and closes; without this wait the close could overtake the status.
    try {
      for (;;) session_.next(std::chrono::seconds(5));
    } catch (const interrupted&) {
      throw;
    } catch (const failure&) {
    }
    throw failure(text);
  }

  template <class Message>
  Message next_message() {
    while (arrived_.empty())
      if (const auto done = session_.next(patience); done.kind == verbs::completion_kind::receive)
        arrived_.push_back(done);
    const auto done = arrived_.front();
    arrived_.pop_front();
    auto message = Message::parse(incoming_.octets(done));
    if (!message) throw failure(tools::describe(message.error()));
    incoming_.post(done.id);
    return *std::move(message);
  }

  template <class Message>
  void send(const Message& message) {
    std::array<std::byte, Message::octets> octets;
    message.emit(octets);
    session_.send(octets);
  }

  int root_;
  bool read_only_;
  std::string name_;
  bool put_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  int file_ = -1;
  file_descriptor source_;
  std::optional<pending_file> pending_;
  mapped_window previous_;
  bool damaged_ = false;
  sha256 hash_;
  sha256_digest digest_ = {};
  std::deque<verbs::completion> arrived_;  // receives not looked at yet
  std::vector<verbs::sge> elements_;
  std::vector<verbs::send_request> requests_;
  session session_;  // ends before the memory above does
  receive_buffers incoming_;
};

}  // namespace

int run(serve_command command) {
  const file_descriptor root(::open(command.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) throw failure(fmt::format("cannot serve {}: {}", command.folder, tools::describe(last_error())));
  guard_mapped_files();
  command.flags.apply(command.options.listen);
  return serve(command.options,
               [root = root.get(), read_only = command.read_only](const auto& where, const auto& request) {
                 client_server(where, root, read_only).run(request);
               });
}

}  // namespace iwarp::tools::copy
