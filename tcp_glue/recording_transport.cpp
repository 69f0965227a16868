#include "tcp_glue/recording_transport.hpp"

#include <algorithm>
#include <array>

namespace iwarp::tcp_glue {
namespace {

class recording_transport final : public transport {
 public:
  recording_transport(std::unique_ptr<transport> inner, std::shared_ptr<recording_file> file, const endpoint& local,
                      const endpoint& remote, opener who)
      : inner_(std::move(inner)), file_(std::move(file)), here_{local}, there_{remote} {
    half& first = who == opener::local ? here_ : there_;
    half& second = who == opener::local ? there_ : here_;
    note(first, recording_file::syn);
    note(second, recording_file::syn | recording_file::ack);
    note(first, recording_file::ack);
  }
  ~recording_transport() override { file_->end(here_.where, there_.where); }

  io_result read(mutable_bytes into) noexcept override {
    const io_result got = inner_->read(into);
    switch (got.state) {
      case io_state::ok: {
        const std::array piece{gather_piece{into.data(), got.size}};
        note_octets(there_, piece, got.size);
        break;
      }
      case io_state::end_of_stream:
        note_fin(there_);
        break;
      case io_state::failed:
        if (got.error == std::errc::connection_reset) note_reset(there_);
        break;
      case io_state::would_block:
        break;
    }
    return got;
  }

  // The octets are noted behind the write. The peer's answer is read later still, so the order is right; an application
  // that changes its buffer in between is told apart from TCP by nobody.
  io_result write(std::span<const gather_piece> pieces) noexcept override {
    const io_result put = inner_->write(pieces);
    if (put.state == io_state::ok) note_octets(here_, pieces, put.size);
    if (put.state == io_state::failed && put.error == std::errc::connection_reset) note_reset(there_);
    return put;
  }

  void shutdown_write() noexcept override {
    note_fin(here_);
    inner_->shutdown_write();
  }
  void close() noexcept override {
    note_fin(here_);
    inner_->close();
  }
  void abort() noexcept override {
    note_reset(here_);
    inner_->abort();
  }

  void wait_readable(std::shared_ptr<readiness_handler> handler) override { inner_->wait_readable(std::move(handler)); }
  void wait_writable(std::shared_ptr<readiness_handler> handler) override { inner_->wait_writable(std::move(handler)); }
  void wait_lost(std::shared_ptr<readiness_handler> handler) override { inner_->wait_lost(std::move(handler)); }
  void cancel() noexcept override { inner_->cancel(); }
  void keep_alive(std::chrono::seconds limit) noexcept override { inner_->keep_alive(limit); }
  [[nodiscard]] std::optional<std::chrono::milliseconds> unanswered() const noexcept override {
    return inner_->unanswered();
  }
  [[nodiscard]] std::uint32_t emss() const noexcept override { return inner_->emss(); }
  [[nodiscard]] result<endpoint> local_endpoint() const noexcept override { return inner_->local_endpoint(); }
  [[nodiscard]] result<endpoint> remote_endpoint() const noexcept override { return inner_->remote_endpoint(); }

 private:
  struct half {
    endpoint where;
    std::uint32_t next = 0;  // sequence number of the next octet
    bool finished = false;   // FIN was noted
  };

  half& other(const half& h) noexcept { return &h == &here_ ? there_ : here_; }

  void note(half& from, std::uint8_t flags, std::span<const gather_piece> payload = {}, std::size_t size = 0) noexcept {
    const half& to = other(from);
    file_->record({.from = from.where,
                   .to = to.where,
                   .sequence = from.next,
                   .acknowledgment = (flags & recording_file::ack) != 0 ? to.next : 0,
                   .flags = flags},
                  payload);
    from.next += static_cast<std::uint32_t>(size);
    if ((flags & (recording_file::syn | recording_file::fin)) != 0) ++from.next;
  }

  void note_octets(half& from, std::span<const gather_piece> pieces, std::size_t size) noexcept {
    std::array<gather_piece, recording_file::max_pieces> part;
    std::size_t skip = 0;  // octets of pieces.front() that are noted already
    while (size > 0) {
      std::size_t count = 0, octets = 0;
      while (octets < size && octets < recording_file::max_payload && count < part.size()) {
        const gather_piece& piece = pieces.front();
        const std::size_t n = std::min({piece.size - skip, size - octets, recording_file::max_payload - octets});
        part[count++] = {static_cast<const std::byte*>(piece.data) + skip, n};
        octets += n;
        skip += n;
        if (skip < piece.size) break;  // the record is full, or the rest was not taken
        pieces = pieces.subspan(1);
        skip = 0;
      }
      note(from, recording_file::psh | recording_file::ack, std::span(part).first(count), octets);
      size -= octets;
    }
  }

  void note_fin(half& from) noexcept {
    if (from.finished || reset_) return;
    from.finished = true;
    note(from, recording_file::fin | recording_file::ack);
  }

  void note_reset(half& from) noexcept {
    if (reset_ || (here_.finished && there_.finished)) return;
    reset_ = true;
    note(from, recording_file::rst | recording_file::ack);
  }

  std::unique_ptr<transport> inner_;
  std::shared_ptr<recording_file> file_;
  half here_;
  half there_;
  bool reset_ = false;
};

}  // namespace

std::unique_ptr<transport> record_traffic(std::unique_ptr<transport> inner, std::shared_ptr<recording_file> file,
                                          opener who) {
  const auto local = inner->local_endpoint();
  const auto remote = inner->remote_endpoint();
  if (!local || !remote || !file->begin(*local, *remote)) return inner;
  return std::make_unique<recording_transport>(std::move(inner), std::move(file), *local, *remote, who);
}

}  // namespace iwarp::tcp_glue
