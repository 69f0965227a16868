// Completion channels and queues, under the plain and the extended interface.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {

ibv_wc_status status_of(verbs::status s) noexcept {
  switch (s) {
    case verbs::status::success:
      return IBV_WC_SUCCESS;
    case verbs::status::flushed:
      return IBV_WC_WR_FLUSH_ERR;
    case verbs::status::local_length:
      return IBV_WC_LOC_LEN_ERR;
    case verbs::status::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case verbs::status::local_qp_operation:
      return IBV_WC_LOC_QP_OP_ERR;
    case verbs::status::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case verbs::status::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case verbs::status::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case verbs::status::bad_response:
      return IBV_WC_BAD_RESP_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

ibv_wc_opcode opcode_of(verbs::completion_kind kind) noexcept {
  switch (kind) {
    case verbs::completion_kind::send:
      return IBV_WC_SEND;
    case verbs::completion_kind::rdma_write:
      return IBV_WC_RDMA_WRITE;
    case verbs::completion_kind::rdma_read:
      return IBV_WC_RDMA_READ;
    case verbs::completion_kind::local_invalidate:
      return IBV_WC_LOCAL_INV;
    case verbs::completion_kind::receive:
      return IBV_WC_RECV;
  }
  return IBV_WC_SEND;
}

namespace {

unsigned flags_of(const verbs::completion& c) noexcept {
  return c.status == verbs::status::success && c.with_invalidate ? static_cast<unsigned>(IBV_WC_WITH_INV) : 0U;
}

void fill(ibv_wc& wc, const verbs::completion& c) noexcept {
  wc.wr_id = c.id;
  wc.status = status_of(c.status);
  wc.opcode = opcode_of(c.kind);
  wc.vendor_err = 0;
  wc.byte_len = c.length;
  wc.invalidated_rkey = c.invalidated.value;
  wc.qp_num = c.qp_number;
  wc.src_qp = 0;
  wc.wc_flags = flags_of(c);
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  auto& native = cq_handle::of(cq).native;
  std::array<verbs::completion, 16> some;
  int got = 0;
  while (got < most) {
    const auto room = std::min<std::size_t>(some.size(), static_cast<std::size_t>(most - got));
    const std::size_t n = native.poll(std::span(some).first(room));
    for (std::size_t i = 0; i < n; ++i) fill(out[got++], some[i]);
    if (n < room) break;
  }
  if (got == 0 && native.overflowed()) return -1;
  return got;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  cq_handle::of(cq).native.arm(solicited_only != 0 ? verbs::notify::solicited : verbs::notify::next);
  return 0;
}

// The extended interface: one completion at a time.
int take_next(cq_handle& cq) {
  if (cq.native.poll({&cq.current, 1}) == 0) return ENOENT;
  cq.wr_id = cq.current.id;
  cq.status = status_of(cq.current.status);
  return 0;
}
cq_handle& of(ibv_cq_ex* cq) { return *static_cast<cq_handle*>(cq); }
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  return take_next(of(cq));
}
int next_poll(ibv_cq_ex* cq) { return take_next(of(cq)); }
void end_poll(ibv_cq_ex*) {}
ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return opcode_of(of(cq).current.kind); }
std::uint32_t read_byte_len(ibv_cq_ex* cq) { return of(cq).current.length; }
std::uint32_t read_qp_num(ibv_cq_ex* cq) { return of(cq).current.qp_number; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return flags_of(of(cq).current); }
/// The invalidated STag shares it.
__be32 read_imm_data(ibv_cq_ex* cq) { return of(cq).current.invalidated.value; }
template <class Number>
Number read_zero(ibv_cq_ex*) {
  return 0;
}

// What a queue may be asked to tell.
constexpr std::uint64_t told = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
                               IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
                               IBV_WC_EX_WITH_DLID_PATH_BITS;

cq_handle* create(ibv_context* context, std::uint32_t depth, void* user, ibv_comp_channel* channel) {
  if (depth > max_cqe) {
    errno = EINVAL;
    return nullptr;
  }
  auto native = verbs::completion_queue::create(open_device::of(context).home->context, depth);
  if (!native) {
    errno = errno_of(native.error());
    return nullptr;
  }
  auto cq = std::make_unique<cq_handle>(*std::move(native));
  cq->context = context;
  cq->cq_context = user;
  cq->channel = channel;
  cq->cqe = static_cast<int>(depth);
  cq->start_poll = start_poll;
  cq->next_poll = next_poll;
  cq->end_poll = end_poll;
  cq->read_opcode = read_opcode;
  cq->read_vendor_err = read_zero<std::uint32_t>;
  cq->read_byte_len = read_byte_len;
  cq->read_imm_data = read_imm_data;
  cq->read_qp_num = read_qp_num;
  cq->read_src_qp = read_zero<std::uint32_t>;
  cq->read_wc_flags = read_wc_flags;
  cq->read_slid = read_zero<std::uint32_t>;
  cq->read_sl = read_zero<std::uint8_t>;
  cq->read_dlid_path_bits = read_zero<std::uint8_t>;
  ::pthread_mutex_init(&cq->mutex, nullptr);
  ::pthread_cond_init(&cq->cond, nullptr);
  if (channel != nullptr) {
    epoll_event watch{.events = EPOLLIN, .data = {.ptr = cq.get()}};
    if (::epoll_ctl(channel->fd, EPOLL_CTL_ADD, cq->native.descriptor(), &watch) != 0) return nullptr;
    const std::lock_guard lock(static_cast<channel_handle*>(channel)->mutex);
    ++channel->refcnt;
  }
  return cq.release();
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* a) {
  if (context == nullptr || a == nullptr || a->cqe == 0 || a->comp_vector != 0) {
    errno = EINVAL;
    return nullptr;
  }
  constexpr std::uint32_t single_threaded = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  if ((a->wc_flags & ~told) != 0 || (a->comp_mask & ~static_cast<std::uint32_t>(IBV_CQ_INIT_ATTR_MASK_FLAGS)) != 0 ||
      ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (a->flags & ~single_threaded) != 0)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return create(context, a->cqe, a->cq_context, a->channel);
}

}  // namespace

void set_completion_operations(verbs_context& ex) {
  ex.create_cq_ex = create_cq_ex;
  ex.context.ops.poll_cq = poll_cq;
  ex.context.ops.req_notify_cq = req_notify_cq;
}

}  // namespace iwarp::compat

using namespace iwarp;
using namespace iwarp::compat;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (missing(context)) return nullptr;
  // Readable while any of its queues has an announcement; O_NONBLOCK on it is honoured below.
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return nullptr;
  auto* const channel = new channel_handle;
  channel->context = context;
  channel->fd = fd;
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel == nullptr) return EINVAL;
  auto* const c = static_cast<channel_handle*>(channel);
  {
    const std::lock_guard lock(c->mutex);
    if (c->refcnt != 0) return EBUSY;
  }
  ::close(c->fd);
  delete c;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void* user, ibv_comp_channel* channel, int vector) {
  if (context == nullptr || depth <= 0 || vector != 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const cq = create(context, static_cast<std::uint32_t>(depth), user, channel);
  return cq == nullptr ? nullptr : cq->handle_of();
}

int ibv_resize_cq(ibv_cq* cq, int depth) {
  if (cq == nullptr || depth <= 0 || static_cast<std::uint32_t>(depth) > max_cqe) return EINVAL;
  const auto done = cq_handle::of(cq).native.resize(static_cast<std::uint32_t>(depth));
  if (!done) return errno_of(done.error());
  cq->cqe = depth;
  return 0;
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (cq == nullptr) return EINVAL;
  auto& c = cq_handle::of(cq);
  if (c.users.load() != 0) return EBUSY;
  open_device::of(c.context).async.remove_if(
      [&](const ibv_async_event& e) { return e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == cq; },
      [](const ibv_async_event&) {});
  if (c.channel != nullptr) {
    ::epoll_ctl(c.channel->fd, EPOLL_CTL_DEL, c.native.descriptor(), nullptr);
    const std::lock_guard lock(static_cast<channel_handle*>(c.channel)->mutex);
    --c.channel->refcnt;
  }
  ::pthread_mutex_lock(&c.mutex);
  while (c.comp_events_completed != c.events_taken || c.async_events_completed != c.async_events_taken) {
    ::pthread_cond_wait(&c.cond, &c.mutex);
  }
  ::pthread_mutex_unlock(&c.mutex);
  ::pthread_cond_destroy(&c.cond);
  ::pthread_mutex_destroy(&c.mutex);
  delete &c;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** user) {
  if (channel == nullptr || cq == nullptr || user == nullptr) return fail_with(EINVAL);
  for (;;) {
    const int flags = ::fcntl(channel->fd, F_GETFL);
    if (flags < 0) return -1;
    epoll_event ready{};
    const bool waits = (flags & O_NONBLOCK) == 0;
    const int n = ::epoll_wait(channel->fd, &ready, 1, waits ? -1 : 0);
    if (n < 0) return -1;
    if (n == 0) return fail_with(EAGAIN);
    auto& c = *static_cast<cq_handle*>(ready.data.ptr);
    if (!c.native.acknowledge()) continue;  // another thread had it
    ::pthread_mutex_lock(&c.mutex);
    ++c.events_taken;
    ::pthread_mutex_unlock(&c.mutex);
    *cq = c.handle_of();
    *user = c.cq_context;
    return 0;
  }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned number) {
  if (cq == nullptr) return;
  ::pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += number;
  ::pthread_cond_signal(&cq->cond);
  ::pthread_mutex_unlock(&cq->mutex);
}

}  // extern "C"
