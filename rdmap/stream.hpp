// Internal to verbs, rdmap.
// One RDMAP stream over one TCP connection: start-up, DDP and MPA halves, read queues, Terminate, teardown
// (RFC 5040, with 5041, 5044, 6581 below it). The glue drives it through mpa::stream_engine; verbs gives it work.
// Threading: not thread-safe; serialised by the progress domain.  Time: passed in.  I/O: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/trace.hpp"
#include "ddp/receiver.hpp"
#include "ddp/segmenter.hpp"
#include "mpa/fpdu_rx.hpp"
#include "mpa/fpdu_tx.hpp"
#include "mpa/mulpdu.hpp"
#include "mpa/startup_exchange.hpp"
#include "mpa/stream_engine.hpp"
#include "mpa/tx_batch.hpp"
#include "rdmap/consumer.hpp"
#include "rdmap/terminate.hpp"

namespace iwarp::rdmap {

/// What the stream does when a Send arrives and no receive is posted.
enum class receive_shortage : std::uint8_t {
  hold,       ///< stop reading: TCP's window holds the peer back until a receive is posted
  terminate,  ///< the RFC's way: Terminate 1/2/02
};

struct stream_options {
  mpa::startup_options startup;
  receive_shortage shortage = receive_shortage::hold;
  std::uint32_t max_receive_sge = 16;  ///< elements that a receive may have
  /// Largest ULPDU to send, octets; the TCP's MULPDU when smaller. For peers that parse no large FPDUs.
  std::uint32_t max_ulpdu = mpa::max_mulpdu;
  /// Initiator: silence of the responder after which a zero-length Write goes out, once. A responder that wants to send
  /// first need not wait for the ULP of this side; and one that overlooked the FPDU right behind its Reply finds it
  /// then. Linux siw does: what arrives between its Reply and the change of its socket's callbacks (siw_cm.c,
  /// siw_accept) waits in the socket until more arrives. Zero: never.
  duration rtr_delay = {};
  // Limits of time; zero means none. RFC 5044 s7.1.2 rule 10 asks for them and names no values.
  duration reply_timeout = std::chrono::seconds(10);
  duration request_timeout = std::chrono::seconds(5);
  /// Responder, peer-to-peer model: how long the RTR may take. Without that model silence is the ULP's right.
  duration first_fpdu_timeout = std::chrono::seconds(30);
  duration fpdu_timeout = std::chrono::seconds(30);   ///< an FPDU once begun must end
  duration close_timeout = std::chrono::seconds(5);   ///< graceful close, from the request to the peer's FIN
  duration linger_timeout = std::chrono::seconds(1);  ///< after a Terminate or a rejection, until the peer closes
};

enum class stream_state : std::uint8_t {
  idle,             ///< nothing begun
  starting,         ///< MPA start-up frames are exchanged
  deciding,         ///< responder: the ULP has the Request
  wait_first_fpdu,  ///< responder: accepted, may not send before one FPDU arrived (RFC 5044 s7.1.2 rule 4)
  open,             ///< everything works
  closing,          ///< graceful close: queued work is sent, then FIN, then the peer's FIN is awaited
  terminating,      ///< an error stopped the stream: the Terminate goes out, what comes in is discarded
  closed,           ///< over; the TCP connection is closed or about to be
};
[[nodiscard]] std::string_view to_string(stream_state state) noexcept;

/// Things the ULP must learn of; each comes at most once per stream, in this order.
enum class stream_event : std::uint8_t {
  request,       ///< responder: peer_frame() is there; accept() or reject()
  established,   ///< the stream is up
  failed,        ///< start-up did not succeed: error(); after a rejection peer_frame() is there
  disconnected,  ///< an established stream ends: error() is empty after a graceful end
  closed,        ///< the engine needs nothing more of the TCP connection
};

struct stream_counters {
  std::uint64_t fpdus_in = 0;
  std::uint64_t fpdus_out = 0;
  std::uint64_t octets_in = 0;  ///< of the TCP stream in full operation
  std::uint64_t octets_out = 0;
  std::uint64_t receive_holds = 0;  ///< times reading stopped because no receive was posted
};

class stream final : public mpa::stream_engine, private mpa::ulpdu_sink, private ddp::upper_layer {
 public:
  /// The references must outlive the stream. `trace` may be null. bind() must come before initiate() or accept().
  stream(const stream_options& options, mpa::rx_memory& rx, mpa::tx_batch_pool& tx, trace_sink* trace = nullptr);
  /// The same and bind() at once.
  stream(const stream_options& options, consumer& user, send_ring& ring, mpa::rx_memory& rx, mpa::tx_batch_pool& tx,
         trace_sink* trace = nullptr);
  ~stream();

  /// What a stream is bound to besides its consumer and ring.
  struct binding {
    std::uint32_t max_receive_sge = 16;  ///< elements that a receive may have
    std::uint64_t first_request = 0;     ///< running index of the first request that will be this stream's
    bool remote_read = true;             ///< false: a Read Request is an error (protocol.md E17)
  };
  /// Gives the stream its consumer and the ring that holds the requests submit() counts. Both must outlive the stream,
  /// or be replaced once needs_consumer() is false.
  void bind(consumer& user, send_ring& ring, const binding& how);

  // Start-up ----------------------------------------------------------------------------------------------------
  /// Initiator: sends the Request. `private_data`: 0..512 octets, 0..508 with revision 2.
  void initiate(const_bytes private_data, timestamp now) noexcept;
  /// Responder: waits for the Request.
  void respond(timestamp now) noexcept;
  /// Responder, after stream_event::request. `ird`, `ord` replace those of the options.
  void accept(const_bytes private_data, std::uint16_t ird, std::uint16_t ord, timestamp now) noexcept;
  void reject(const_bytes private_data, timestamp now) noexcept;

  // mpa::stream_engine ------------------------------------------------------------------------------------------
  mutable_bytes rx_window() noexcept override;
  void rx_commit(std::size_t n, timestamp now) noexcept override;
  void rx_park(timestamp now) noexcept override;
  void handle_eof(timestamp now) noexcept override;
  void handle_lost(std::error_code reason, timestamp now) noexcept override;
  void handle_emss(std::uint32_t emss) noexcept override { emss_ = emss; }
  void handle_deadline(timestamp now) noexcept override;
  std::span<const gather_piece> tx_window(timestamp now) noexcept override;
  void tx_advance(std::size_t n, timestamp now) noexcept override;
  [[nodiscard]] bool wants_read() const noexcept override;
  [[nodiscard]] timestamp next_deadline() const noexcept override;
  [[nodiscard]] mpa::disposition wants() const noexcept override { return wants_; }

  // Commands ----------------------------------------------------------------------------------------------------
  /// Requests with running index below `end` are the stream's. Index 0 is the first of this stream's life. Once the
  /// stream has ended they are flushed at once. After close() they are flushed behind the ones before them; once FIN
  /// is on its way they are a Bad Close as well: the connection is reset (VERBS s6.2).
  void submit(std::uint64_t end, timestamp now) noexcept;
  /// A receive was posted: goes on if the stream held a message for want of one.
  void receive_posted(timestamp now) noexcept;
  /// Graceful close: everything submitted is carried out, then FIN. Bounded by close_timeout.
  void close(timestamp now) noexcept;
  /// Consumer's Modify QP to Terminate: sends 0/0/00, or the code of `reason`, and ends. Resets the connection where
  /// no FPDU may be sent: during start-up, and behind the own FIN.
  void terminate(std::error_code reason, timestamp now) noexcept;
  /// Resets the connection; no Terminate.
  void abort(timestamp now) noexcept;
  /// Memory [region] is about to go away: what is queued to be sent from it is copied, and a message that is arriving
  /// into it ends the stream. Its STag has been made invalid before.
  void detach(const_bytes region, timestamp now) noexcept;

  // Outputs -----------------------------------------------------------------------------------------------------
  std::optional<stream_event> poll_event() noexcept;

  [[nodiscard]] stream_state state() const noexcept { return state_; }
  [[nodiscard]] const stream_options& options() const noexcept { return options_; }
  /// Why the stream ended; empty while it lives and after a graceful end. The first cause wins.
  [[nodiscard]] std::error_code error() const noexcept { return error_; }
  /// What handle_lost() was told; empty when TCP was not lost, or ended by FIN.
  [[nodiscard]] std::error_code tcp_error() const noexcept { return tcp_error_; }
  /// The peer's start-up frame; from stream_event::request, established or a rejection on.
  [[nodiscard]] const mpa::startup_frame& peer_frame() const noexcept { return startup_.peer_frame(); }
  [[nodiscard]] bool peer_frame_begun() const noexcept { return startup_.peer_frame_begun(); }
  [[nodiscard]] const mpa::negotiated& agreement() const noexcept { return startup_.agreement(); }
  [[nodiscard]] const std::optional<terminate_message>& received_terminate() const noexcept { return terminate_in_; }
  [[nodiscard]] const std::optional<terminate_message>& sent_terminate() const noexcept { return terminate_out_; }
  /// A message waits for a receive to be posted.
  [[nodiscard]] bool held() const noexcept { return held_; }
  [[nodiscard]] bool ended() const noexcept {
    return state_ == stream_state::terminating || state_ == stream_state::closed;
  }
  /// False once no memory or request of the consumer is used any more: it has ended, or its FIN is queued.
  [[nodiscard]] bool needs_consumer() const noexcept;
  [[nodiscard]] stream_counters counters() const noexcept;

  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

 private:
  /// Read this side asked for, oldest first.
  struct outstanding_read {
    std::uint64_t index = 0;  // in the ring
    bool rtr = false;         // MPA's own; no completion
    msn sequence = {};
    stag sink = {};
    std::uint64_t sink_offset = 0;
    void* address = nullptr;
    std::uint32_t size = 0;
    std::uint32_t received = 0;
  };
  /// Read Request of the peer, oldest first.
  struct inbound_read {
    read_request request;
    msn sequence;
    std::uint64_t end_position = 0;  // octets framed when the last segment of its response was
  };
  /// A message that waits for an earlier, tagged one to end before it is delivered (RFC 5041 s5.4).
  struct undelivered {
    receive_slot* slot = nullptr;  // null: the peer's RTR
    ddp::untagged_header header;
    std::uint32_t size = 0;
  };
  template <class T>
  struct fifo {  // fixed capacity, allocated at establishment
    std::vector<T> slots;
    std::size_t head = 0, size = 0;
    void reset(std::size_t capacity) {
      slots.assign(capacity, T{});
      head = size = 0;
    }
    [[nodiscard]] bool full() const noexcept { return size == slots.size(); }
    [[nodiscard]] bool empty() const noexcept { return size == 0; }
    T& operator[](std::size_t i) noexcept { return slots[(head + i) % slots.size()]; }
    T& front() noexcept { return slots[head]; }
    void push(const T& value) noexcept { slots[(head + size++) % slots.size()] = value; }
    void pop() noexcept {
      head = (head + 1) % slots.size();
      --size;
    }
  };
  /// The request that an error is about.
  struct guilty_request {
    std::uint64_t index;
    wr_status status;
  };
  enum class timer : std::uint8_t { startup, rtr, first_fpdu, fpdu, close, count };
  enum class message_source : std::uint8_t { none, request, response };

  // mpa::ulpdu_sink
  result<mpa::ulpdu_answer> on_ulpdu(const mpa::ulpdu& unit) noexcept override;
  // ddp::upper_layer
  result<> check_tagged(const ddp::tagged_header& header, std::size_t payload) noexcept override;
  result<> check_untagged(const ddp::untagged_header& header, std::size_t payload) noexcept override;
  result<ddp::tagged_target> resolve_tagged(const ddp::tagged_header& header, std::size_t size) noexcept override;
  void release_tagged(const ddp::tagged_target& target) noexcept override;
  result<> tagged_placed(const ddp::tagged_header& header, std::size_t size) noexcept override;
  result<ddp::buffer_answer> untagged_buffer(const ddp::untagged_header& header,
                                             ddp::untagged_target& out) noexcept override;
  result<> untagged_placed(const ddp::untagged_header& header, std::uint32_t size) noexcept override;

  // start-up and life (stream.cpp)
  void set_state(stream_state next) noexcept;
  void set_timer(timer which, duration after, timestamp now) noexcept;
  void clear_timer(timer which) noexcept { deadlines_[static_cast<std::size_t>(which)] = never; }
  void raise(stream_event event) noexcept {  // each at most once
    const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(event));
    if ((raised_ & bit) == 0) events_ = static_cast<std::uint8_t>(events_ | bit);
    raised_ = static_cast<std::uint8_t>(raised_ | bit);
  }
  void startup_commit(const_bytes octets, timestamp now) noexcept;
  void startup_failed(std::error_code reason, timestamp now) noexcept;
  [[nodiscard]] bool was_established() const noexcept {
    return (raised_ & (1u << static_cast<unsigned>(stream_event::established))) != 0;
  }
  void enter_full_operation(timestamp now) noexcept;
  void fail_stream(std::error_code reason, timestamp now) noexcept;
  void end_stream(std::error_code reason) noexcept;
  void flush_requests() noexcept;
  void finish(mpa::disposition how) noexcept;
  void finish_terminating() noexcept;
  [[nodiscard]] bool terminate_sent() const noexcept {
    return !terminate_pending_ && (batch_ == nullptr || batch_->empty());
  }
  void want(mpa::disposition how) noexcept {
    if (how > wants_) wants_ = how;
  }
  void trace(trace_event event, std::uint64_t a = 0, std::uint64_t b = 0, std::string_view text = {}) const noexcept {
    if (trace_ != nullptr) trace_->on_trace({event, a, b, text});
  }

  // receive side (stream_rx.cpp)
  void rx_result(const result<mpa::fpdu_rx::status>& r, timestamp now) noexcept;
  result<> resolve_receive(receive_slot& slot, ddp::untagged_target& out) noexcept;
  result<> deliver_send(const undelivered& message) noexcept;
  void note_offender(const_bytes header, std::size_t segment_size) noexcept;
  result<> deliver_waiting() noexcept;
  tl::unexpected<std::error_code> bad_response(ddp::errc e) noexcept;
  void complete_current_receive(wr_status status) noexcept;
  [[nodiscard]] std::uint64_t guilty_read(msn sequence, const std::optional<read_request>& request) noexcept;
  void terminate_arrived() noexcept;
  [[nodiscard]] bool discarding() const noexcept;
  [[nodiscard]] bool tagged_open() const noexcept { return write_open_ || response_open_; }

  // transmit side (stream_tx.cpp)
  void frame_more(timestamp now) noexcept;
  /// Frames the next segment: `size` octets of payload, `most` of ULPDU.
  void frame_segment(std::uint32_t size, std::uint32_t most, timestamp now) noexcept;
  bool next_message(timestamp now) noexcept;
  bool next_request(timestamp now) noexcept;
  bool next_response(timestamp now) noexcept;
  void source_failed(access_error why, timestamp now) noexcept;
  void frame_rtr() noexcept;
  void frame_terminate() noexcept;
  [[nodiscard]] std::uint32_t mulpdu() const noexcept;
  /// Gathers the next `size` octets of the request in progress; false when an element's memory may not be read.
  bool gather_request(std::uint32_t size) noexcept;
  void retire() noexcept;
  [[nodiscard]] bool work_outstanding() const noexcept;
  /// Requests below this are to be carried out.
  [[nodiscard]] std::uint64_t work_end() const noexcept { return std::min(submitted_, close_limit_); }
  void release_pins() noexcept;
  void check_closing(timestamp now) noexcept;

  stream_options options_;
  consumer* user_ = nullptr;
  send_ring* ring_ = nullptr;
  bool remote_read_ = true;
  mpa::rx_memory& rx_memory_;
  mpa::tx_batch_pool& batches_;
  trace_sink* trace_;

  stream_state state_ = stream_state::idle;
  mpa::disposition wants_ = mpa::disposition::keep;
  std::uint8_t events_ = 0;  // raised and not polled, a bit each
  std::uint8_t raised_ = 0;
  std::error_code error_;
  std::error_code tcp_error_;
  std::optional<guilty_request> guilty_;
  std::array<timestamp, static_cast<std::size_t>(timer::count)> deadlines_;
  std::uint32_t emss_ = 1460;

  mpa::startup_exchange startup_;
  mpa::fpdu_rx fpdu_rx_;
  mpa::fpdu_tx fpdu_tx_;
  ddp::receiver ddp_rx_;
  ddp::segmenter ddp_tx_;

  // receive side
  bool held_ = false;
  bool first_fpdu_seen_ = false;
  bool write_open_ = false;
  bool response_open_ = false;
  bool peer_fin_ = false;
  bool fin_waits_ = false;  // the peer's FIN came behind a held message
  receive_slot* current_receive_ = nullptr;
  bool current_is_rtr_ = false;
  std::vector<mutable_bytes> receive_pieces_;
  // Read Request or Terminate that is arriving. Longer than any Terminate defined: what more a peer adds is ignored.
  std::array<std::byte, 128> control_buffer_{};
  mutable_bytes control_piece_;
  fifo<undelivered> undelivered_;
  std::size_t undelivered_reads_ = 0;  // of inbound_, the newest ones that wait for a tagged message to end
  std::array<std::byte, ddp::untagged_header_size> offender_{};
  std::size_t offender_size_ = 0;
  std::size_t offender_length_ = 0;
  std::optional<read_request> offender_request_;
  std::uint64_t fpdu_timer_at_ = 0;  // FPDUs that had come when the timer was set
  std::uint64_t receive_holds_ = 0;
  std::optional<terminate_message> terminate_in_;

  // read queues
  fifo<outstanding_read> reads_;
  fifo<inbound_read> inbound_;

  // transmit side
  gather_piece startup_piece_{};
  std::unique_ptr<mpa::tx_batch> batch_;
  std::array<std::byte, read_request_size> request_header_{};  // of the Read Request being framed
  std::uint64_t accepted_ = 0;                                 // octets of full operation that TCP took
  std::uint64_t submitted_ = 0;                                // running indices into the ring
  std::uint64_t close_limit_ = UINT64_MAX;                     // where submitted_ was at close()
  std::uint64_t next_ = 0;                                     // first one not begun
  std::uint64_t retired_ = 0;                                  // first one not completed
  message_source source_ = message_source::none;
  std::size_t sge_index_ = 0;  // cursor of the request in progress
  std::uint32_t sge_offset_ = 0;
  std::uint32_t response_sent_ = 0;
  std::size_t responses_framed_ = 0;  // of inbound_, the oldest ones whose response is framed and not yet taken
  std::uint32_t burst_ = 0;           // responses in a row while requests wait
  mpa::rtr_kind rtr_pending_ = mpa::rtr_kind::none;
  bool terminate_pending_ = false;
  std::optional<terminate_message> terminate_out_;
  std::uint64_t fpdus_out_ = 0;
  std::vector<const_bytes> gather_;
  std::vector<void*> pins_;
};

}  // namespace iwarp::rdmap
