#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>

#include "tools/common/failure.hpp"
#include "tools/common/session.hpp"
#include "tools/copy/commands.hpp"
#include "tools/copy/file_tree.hpp"
#include "tools/copy/mapped_window.hpp"
#include "tools/copy/pending_file.hpp"
#include "tools/copy/progress.hpp"
#include "tools/copy/sha256.hpp"

namespace iwarp::tools::copy {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(60);  // for the server's next message

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The local file: read for a put, made for a get.
class local_file {
 public:
  static local_file to_read(const std::string& path) {
    auto opened = require(open_regular(AT_FDCWD, path, true), "cannot read " + path);
    local_file file;
    file.path_ = path;
    file.size_ = opened.size;
    file.source_ = std::move(opened.descriptor);
    return file;
  }

  /// The folder is looked at now, the file is made by create().
  static local_file to_write(std::string path, const std::string& name) {
    if (path.empty()) path = last_component(name);
    struct stat about = {};
    if (::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) path += "/" + last_component(name);
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    local_file file;
    file.path_ = path;
    file.where_.name = last_component(path);
    file.where_.folder = file_descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!file.where_.folder || file.where_.name.empty())
      throw failure(fmt::format("cannot write {}: {}", path, tools::describe(last_error())));
    return file;
  }

  void create(std::uint64_t size) {
    size_ = size;
    pending_.emplace(require(pending_file::create(std::move(where_), size), "cannot write " + path_));
  }
  void commit() { require(pending_->commit(), "cannot write " + path_); }

  [[nodiscard]] int descriptor() const noexcept { return pending_ ? pending_->descriptor() : source_.get(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  file_descriptor source_;
  located where_;
  std::optional<pending_file> pending_;
};

class client {
 public:
  explicit client(const copy_command& command)
      : command_(command),
        put_(command.op == operation::put),
        file_(put_ ? local_file::to_read(command.file) : local_file::to_write(command.file, command.name)),
        context_(require(verbs::context::create(), "cannot start the iWARP stack")),
        session_(context_, {.max_send_requests = 16,
                            .max_receive_requests = max_windows + 2,
                            .max_send_sge = 1,
                            .max_receive_sge = 1,
                            .max_inline = max_message,
                            .remote_read = put_,
                            .remote_write = !put_}),
        incoming_(session_, max_windows + 2, max_message) {}

  void run() {
    verbs::connect_options options;
    command_.flags.apply(options);
    session_.connect(resolve_peer(command_.where), options, [this] { incoming_.post_all(); });
    const auto start = clock::now();
    ask();
    try {
      move_windows();
    } catch (const interrupted&) {
      throw;
    } catch (const failure&) {
      // A missing page that the kernel meets itself, inside sendmsg(2), ends the connection instead of raising SIGBUS.
      if (put_ && shortened(file_.descriptor(), file_.size())) throw failure(shortened_text());
      throw;
    }
    const auto digest = conclude();
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    session_.disconnect();
    fmt::print("copied {} octets in {:.3f} s ({:.1f} MB/s), sha256 {}\n", file_.size(), seconds,
               static_cast<double>(file_.size()) / 1e6 / seconds, hex(digest));
  }

 private:
  // A window whose memory the server may reach.
  struct offered {
    std::uint64_t offset = 0;
    mapped_window memory;
    verbs::memory_region region;  // goes before the memory it names
  };

  void ask() {
    const std::string name = command_.name.empty() ? last_component(command_.file) : command_.name;
    subject_ = fmt::format("{} {} {}", put_ ? "put to" : "get from", session_.peer_text(), name);
    send(request{.op = command_.op, .size = put_ ? file_.size() : 0, .name = name});
    const auto said = next_message<answer>();
    check(said.status);
    if (!put_) file_.create(said.size);
  }

  void move_windows() {
    progress_bar bar(last_component(file_.path()), file_.size());
    std::uint64_t next = 0;
    for (std::uint64_t done = 0; done < file_.size();) {
      while (windows_.size() < max_windows && next < file_.size()) next += offer(next);
      const auto said = next_message<window_done>();
      check(said.status);
      offered window = std::move(windows_.front());
      windows_.pop_front();
      if (said.offset != window.offset || said.length != window.memory.octets().size())
        throw failure(subject_ + ": the server moved another window than the next one");
      // From here on the server cannot touch it (RFC 5042 s6.2.2): what is hashed is what stays.
      window.region = {};
      // The server has work meanwhile.
      if (next < file_.size()) next += offer(next);
      hash_.add(window.memory.octets());
      if (window.memory.damaged()) throw failure(shortened_text());
      done += said.length;
      bar.show(done);
    }
  }

  std::uint64_t offer(std::uint64_t offset) {
    const std::uint32_t length = window_length(file_.size(), offset);
    offered made{
        .offset = offset,
        .memory = require(mapped_window::map(file_.descriptor(), offset, length, !put_), "cannot map " + file_.path()),
        .region = {}};
    auto region =
        put_ ? verbs::memory_region::create_read_only(session_.pd(), made.memory.octets(), verbs::access::remote_read)
             : verbs::memory_region::create(session_.pd(), made.memory.octets(),
                                            verbs::access::local_write | verbs::access::remote_write);
    made.region = require(std::move(region), "cannot register memory of " + file_.path());
    const auto remote = made.region.remote();
    windows_.push_back(std::move(made));
    send(window{.offset = offset, .length = length, .key = remote.key, .address = remote.offset});
    return length;
  }

  sha256_digest conclude() {
    const auto digest = hash_.finish();
    send(finish{.size = file_.size(), .digest = digest});
    const auto said = next_message<outcome>();
    check(said.status);
    if (said.size != file_.size() || said.digest != digest)
      throw failure(subject_ + ": checksum mismatch: what arrived is not what was sent");
    if (!put_) file_.commit();
    return digest;
  }

  std::string shortened_text() const {
    return fmt::format("{} was shortened by somebody else while it was copied", file_.path());
  }

  void check(status said) {
    if (said == status::ok) return;
    throw failure(fmt::format("{}: {}", subject_, describe(said)));
  }

  template <class Message>
  Message next_message() {
    for (;;) {
      const auto done = session_.next(patience);
      if (done.kind != verbs::completion_kind::receive) continue;
      auto message = Message::parse(incoming_.octets(done));
      if (!message) throw failure(fmt::format("{}: {}", session_.peer_text(), tools::describe(message.error())));
      incoming_.post(done.id);
      return *std::move(message);
    }
  }

  template <class Message>
  void send(const Message& message) {
    std::array<std::byte, Message::octets> octets;
    message.emit(octets);
    session_.send(octets);
  }

  const copy_command& command_;
  bool put_;
  local_file file_;
  std::string subject_;
  sha256 hash_;
  verbs::context context_;
  session session_;
  receive_buffers incoming_;
  std::deque<offered> windows_;
};

}  // namespace

int run(const copy_command& command) {
  guard_mapped_files();
  client(command).run();
  return 0;
}

}  // namespace iwarp::tools::copy
