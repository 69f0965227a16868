// One connection over librdmacm and libibverbs, step by step as told; runs in the siw host. Its twin over this
// project's verbs is ours_probe.cpp: both take the same words and print the same JSON lines.
//
//   siw_probe listen|connect ADDR PORT [--data HEX] [--ird N] [--ord N] [--answer accept|reject|ignore|gone|nobody]
//   [--count N] STEP...
//
// Steps, once connected: send:N  last:N  recv:N  offer  take  write:N  check:N  reads:COUNT:N  stream  pull  hold
// disconnect  abort  exit  bad:N
// bad: a Write with a key that the peer does not have.  last: a Send that the peer may answer by ending the connection,
// so that its completion may say anything.
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { buffer_size = 1 << 20, receive_size = 1 << 16, receives = 16, depth = 256 };

static struct {
  int listens;
  const char* address;
  const char* port;
  const char* answer;
  uint8_t data[256];
  uint8_t data_size;
  uint8_t ird, ord;
  int count;
  int limit_ms;  // for whatever is waited for
  char** steps;
} want = {.answer = "accept", .ird = 16, .ord = 16, .count = 1, .limit_ms = 8000};

static struct {
  struct rdma_event_channel* channel;
  struct rdma_cm_id* id;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_mr *source_mr, *sink_mr, *receive_mr;
  uint8_t *source, *sink, *receive;
  uint64_t peer_source, peer_sink;
  uint32_t peer_source_key, peer_sink_key;
  int connected, gone;
  int arrived_size[receives], arrived_slot[receives], arrived;  // Sends not looked at yet, oldest first
} own;

static void say(const char* format, ...) {
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  putchar('\n');
  fflush(stdout);
}

static void fail(const char* what) {
  say("{\"failed\": \"%s\", \"errno\": %d, \"why\": \"%s\"}", what, errno, strerror(errno));
  exit(1);
}

static uint8_t pattern(size_t i) { return (uint8_t)(i * 7 + (i >> 8)); }

static int right(const uint8_t* octets, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (octets[i] != pattern(i)) return 0;
  return 1;
}

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct ibv_mr* provide(uint8_t** memory, size_t size, unsigned rights) {
  *memory = malloc(size);
  struct ibv_mr* mr = *memory ? ibv_reg_mr(own.pd, *memory, size, rights) : NULL;
  if (!mr) fail("ibv_reg_mr");
  return mr;
}

static void post_receive(int slot) {
  struct ibv_sge element = {(uintptr_t)(own.receive + (size_t)slot * receive_size), receive_size, own.receive_mr->lkey};
  struct ibv_recv_wr request = {.wr_id = (uint64_t)slot, .sg_list = &element, .num_sge = 1}, *bad;
  if ((errno = ibv_post_recv(own.id->qp, &request, &bad))) fail("ibv_post_recv");
}

static void make_queues(struct rdma_cm_id* id) {
  own.id = id;
  own.connected = own.gone = own.arrived = 0;
  own.pd = ibv_alloc_pd(id->verbs);
  if (!own.pd) fail("ibv_alloc_pd");
  own.cq = ibv_create_cq(id->verbs, depth + receives, NULL, NULL, 0);
  if (!own.cq) fail("ibv_create_cq");
  struct ibv_qp_init_attr attributes = {
      .send_cq = own.cq,
      .recv_cq = own.cq,
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .cap = {.max_send_wr = depth, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1}};
  if (rdma_create_qp(id, own.pd, &attributes)) fail("rdma_create_qp");
  own.source_mr = provide(&own.source, buffer_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  own.sink_mr = provide(&own.sink, buffer_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  own.receive_mr = provide(&own.receive, (size_t)receives * receive_size, IBV_ACCESS_LOCAL_WRITE);
  for (size_t i = 0; i < buffer_size; ++i) own.source[i] = pattern(i);
  memset(own.sink, 0xA5, buffer_size);
  for (int i = 0; i < receives; ++i) post_receive(i);
}

static void free_queues(void) {
  rdma_destroy_qp(own.id);
  ibv_dereg_mr(own.source_mr);
  ibv_dereg_mr(own.sink_mr);
  ibv_dereg_mr(own.receive_mr);
  ibv_destroy_cq(own.cq);
  ibv_dealloc_pd(own.pd);
  free(own.source);
  free(own.sink);
  free(own.receive);
  rdma_destroy_id(own.id);
}

static void say_event(const struct rdma_cm_event* event, const char* name) {
  char hex[513] = "";
  for (unsigned i = 0; i < event->param.conn.private_data_len; ++i)
    sprintf(hex + 2 * i, "%02x", ((const uint8_t*)event->param.conn.private_data)[i]);
  say("{\"event\": \"%s\", \"status\": %d, \"data\": \"%s\", \"responder_resources\": %u, \"initiator_depth\": %u}",
      name, event->status, hex, event->param.conn.responder_resources, event->param.conn.initiator_depth);
}

// The next event within the limit, or NULL. Acknowledge it.
static struct rdma_cm_event* next_event(int limit) {
  struct pollfd waiting = {own.channel->fd, POLLIN, 0};
  struct rdma_cm_event* event = NULL;
  if (poll(&waiting, 1, limit) > 0 && rdma_get_cm_event(own.channel, &event)) fail("rdma_get_cm_event");
  return event;
}

static struct rdma_cm_event* require_event(enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = next_event(want.limit_ms);
  if (!event) fail("no event");
  if (event->event != type) {
    say_event(event, rdma_event_str(event->event));
    exit(3);
  }
  return event;
}

static void look_for_events(int limit) {
  struct rdma_cm_event* event = next_event(limit);
  if (!event) return;
  say_event(event, rdma_event_str(event->event));
  if (event->event == RDMA_CM_EVENT_DISCONNECTED) own.gone = 1;
  rdma_ack_cm_event(event);
}

// One completion of a request (not a receive), or NULL status when the limit is over.
static int next_done(struct ibv_wc* done) {
  const int64_t end = now_ms() + want.limit_ms;
  while (now_ms() < end) {
    const int n = ibv_poll_cq(own.cq, 1, done);
    if (n < 0) fail("ibv_poll_cq");
    if (n == 0) {
      usleep(100);  // one processor: siw's own threads want it
      continue;
    }
    // The opcode of a failed completion is not to be trusted; the ids of receives are small.
    if (done->wr_id >= receives) return 1;
    if (done->status == IBV_WC_SUCCESS) {
      own.arrived_slot[own.arrived] = (int)done->wr_id;
      own.arrived_size[own.arrived++] = (int)done->byte_len;
      return 0;
    }
    own.gone = 1;
    return 0;
  }
  fail("no completion");
  return 0;
}

static void wait_done(const char* step, int count) {
  struct ibv_wc done;
  while (count > 0) {
    if (!next_done(&done)) continue;
    if (done.status != IBV_WC_SUCCESS) {
      say("{\"step\": \"%s\", \"status\": \"%s\"}", step, ibv_wc_status_str(done.status));
      exit(4);
    }
    --count;
  }
}

static int post(enum ibv_wr_opcode what, void* local, uint32_t size, struct ibv_mr* mr, uint64_t remote, uint32_t key) {
  struct ibv_sge element = {(uintptr_t)local, size, mr->lkey};
  struct ibv_send_wr request = {.wr_id = 1000,
                                .sg_list = &element,
                                .num_sge = size ? 1 : 0,
                                .opcode = what,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.rdma = {remote, key}},
                     *bad;
  if (what == IBV_WR_RDMA_READ) request.num_sge = 1;
  return errno = ibv_post_send(own.id->qp, &request, &bad);
}

static void require_post(enum ibv_wr_opcode what, void* local, uint32_t size, struct ibv_mr* mr, uint64_t remote,
                         uint32_t key) {
  if (post(what, local, size, mr, remote, key)) fail("ibv_post_send");
}

// The oldest Send that arrived; its slot is posted again by the caller.
static int take_arrived(int* size) {
  struct ibv_wc done;
  while (!own.arrived) {
    if (own.gone) fail("the connection ended before a Send came");
    next_done(&done);
  }
  const int slot = own.arrived_slot[0];
  *size = own.arrived_size[0];
  --own.arrived;
  memmove(own.arrived_slot, own.arrived_slot + 1, sizeof own.arrived_slot - sizeof own.arrived_slot[0]);
  memmove(own.arrived_size, own.arrived_size + 1, sizeof own.arrived_size - sizeof own.arrived_size[0]);
  return slot;
}

struct offer {
  uint64_t source, sink;
  uint32_t source_key, sink_key;
};

static void until_error(const char* step, enum ibv_wr_opcode what) {
  struct ibv_wc done = {.status = IBV_WC_SUCCESS};
  long count = 0;
  int outstanding = 0;
  while (done.status == IBV_WC_SUCCESS) {
    while (outstanding < 4) {
      const int bad = what == IBV_WR_RDMA_READ
                          ? post(what, own.sink, buffer_size, own.sink_mr, own.peer_source, own.peer_source_key)
                          : post(what, own.source, buffer_size, own.source_mr, own.peer_sink, own.peer_sink_key);
      if (bad) {
        say("{\"step\": \"%s\", \"status\": \"post: %s\", \"count\": %ld}", step, strerror(bad), count);
        return;
      }
      ++outstanding;
    }
    if (next_done(&done)) --outstanding, ++count;
    if (count == 1) say("{\"step\": \"%s\", \"status\": \"begun\"}", step);
  }
  say("{\"step\": \"%s\", \"status\": \"%s\", \"count\": %ld}", step, ibv_wc_status_str(done.status), count);
}

static void run_step(const char* step) {
  unsigned count = 0, size = 0;
  int got = 0;
  if (sscanf(step, "last:%u", &size) == 1) {
    struct ibv_wc done;
    require_post(IBV_WR_SEND, own.source, size, own.source_mr, 0, 0);
    while (!next_done(&done)) {
    }
  } else if (sscanf(step, "send:%u", &size) == 1) {
    require_post(IBV_WR_SEND, own.source, size, own.source_mr, 0, 0);
    wait_done(step, 1);
  } else if (sscanf(step, "recv:%u", &size) == 1) {
    const int slot = take_arrived(&got);
    if (got != (int)size || !right(own.receive + (size_t)slot * receive_size, size))
      fail("another Send than was expected");
    post_receive(slot);
  } else if (!strcmp(step, "offer")) {
    const struct offer offer = {htobe64((uintptr_t)own.source), htobe64((uintptr_t)own.sink),
                                htobe32(own.source_mr->rkey), htobe32(own.sink_mr->rkey)};
    uint8_t* message;
    struct ibv_mr* mr = provide(&message, sizeof offer, IBV_ACCESS_LOCAL_WRITE);
    memcpy(message, &offer, sizeof offer);
    require_post(IBV_WR_SEND, message, sizeof offer, mr, 0, 0);
    wait_done(step, 1);
    ibv_dereg_mr(mr);
    free(message);
  } else if (!strcmp(step, "take")) {
    struct offer offer;
    const int slot = take_arrived(&got);
    if (got != sizeof offer) fail("that was no offer");
    memcpy(&offer, own.receive + (size_t)slot * receive_size, sizeof offer);
    own.peer_source = be64toh(offer.source);
    own.peer_sink = be64toh(offer.sink);
    own.peer_source_key = be32toh(offer.source_key);
    own.peer_sink_key = be32toh(offer.sink_key);
    post_receive(slot);
  } else if (sscanf(step, "write:%u", &size) == 1) {
    require_post(IBV_WR_RDMA_WRITE, own.source, size, own.source_mr, own.peer_sink, own.peer_sink_key);
    wait_done(step, 1);
  } else if (sscanf(step, "bad:%u", &size) == 1) {
    struct ibv_wc done;
    require_post(IBV_WR_RDMA_WRITE, own.source, size, own.source_mr, own.peer_sink, own.peer_sink_key ^ 1);
    while (!next_done(&done)) {
    }
  } else if (sscanf(step, "check:%u", &size) == 1) {
    if (!right(own.sink, size)) fail("the sink does not hold what was written");
  } else if (sscanf(step, "reads:%u:%u", &count, &size) == 2) {
    for (unsigned i = 0; i < count; ++i)
      require_post(IBV_WR_RDMA_READ, own.sink + i * size, size, own.sink_mr, own.peer_source + i * size,
                   own.peer_source_key);
    wait_done(step, (int)count);
    if (!right(own.sink, count * size)) fail("what was read differs");
  } else if (!strcmp(step, "stream")) {
    until_error(step, IBV_WR_RDMA_WRITE);
  } else if (!strcmp(step, "pull")) {
    until_error(step, IBV_WR_RDMA_READ);
  } else if (!strcmp(step, "hold") || !strcmp(step, "disconnect")) {
    if (*step == 'd' && rdma_disconnect(own.id)) fail("rdma_disconnect");
    const int64_t end = now_ms() + want.limit_ms;
    own.gone = 0;
    while (!own.gone && now_ms() < end) look_for_events(100);
    if (!own.gone) fail("no event of the disconnection");
  } else if (!strcmp(step, "abort")) {
    // What verbs have for it: the state Error, in which siw closes at once.
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};
    if ((errno = ibv_modify_qp(own.id->qp, &attributes, IBV_QP_STATE))) fail("ibv_modify_qp");
  } else if (!strcmp(step, "exit")) {
    say("{\"step\": \"exit\", \"status\": \"success\"}");
    _exit(0);
  } else {
    fail("unknown step");
  }
  say("{\"step\": \"%s\", \"status\": \"success\"}", step);
}

static void run_steps(void) {
  for (char** step = want.steps; *step; ++step) run_step(*step);
}

static struct rdma_conn_param parameters(void) {
  return (struct rdma_conn_param){.private_data = want.data,
                                  .private_data_len = want.data_size,
                                  .responder_resources = want.ird,
                                  .initiator_depth = want.ord,
                                  .retry_count = 7};
}

static void run_client(struct sockaddr* where) {
  struct rdma_cm_id* id;
  if (rdma_create_id(own.channel, &id, NULL, RDMA_PS_TCP)) fail("rdma_create_id");
  if (rdma_resolve_addr(id, NULL, where, 2000)) fail("rdma_resolve_addr");
  rdma_ack_cm_event(require_event(RDMA_CM_EVENT_ADDR_RESOLVED));
  if (rdma_resolve_route(id, 2000)) fail("rdma_resolve_route");
  rdma_ack_cm_event(require_event(RDMA_CM_EVENT_ROUTE_RESOLVED));
  make_queues(id);
  struct rdma_conn_param p = parameters();
  if (rdma_connect(id, &p)) fail("rdma_connect");
  struct rdma_cm_event* event = require_event(RDMA_CM_EVENT_ESTABLISHED);
  say_event(event, "established");
  rdma_ack_cm_event(event);
  run_steps();
  free_queues();
}

static void run_server(struct sockaddr* where) {
  struct rdma_cm_id* listener;
  if (rdma_create_id(own.channel, &listener, NULL, RDMA_PS_TCP)) fail("rdma_create_id");
  if (rdma_bind_addr(listener, where)) fail("rdma_bind_addr");
  if (rdma_listen(listener, 16)) fail("rdma_listen");
  say("{\"event\": \"listening\"}");
  if (!strcmp(want.answer, "nobody")) want.count = 0;
  for (int i = 0; i < want.count; ++i) {
    struct rdma_cm_event* event = require_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id* id = event->id;
    say_event(event, "request");
    rdma_ack_cm_event(event);
    if (!strcmp(want.answer, "reject")) {
      if (rdma_reject(id, want.data, want.data_size)) fail("rdma_reject");
      rdma_destroy_id(id);
      continue;
    }
    if (!strcmp(want.answer, "gone")) _exit(0);
    if (!strcmp(want.answer, "ignore")) {
      look_for_events(want.limit_ms);
      rdma_destroy_id(id);
      continue;
    }
    make_queues(id);
    struct rdma_conn_param p = parameters();
    if (rdma_accept(id, &p)) fail("rdma_accept");
    event = require_event(RDMA_CM_EVENT_ESTABLISHED);
    say_event(event, "established");
    rdma_ack_cm_event(event);
    run_steps();
    free_queues();
  }
  rdma_destroy_id(listener);
}

static void parse(int argc, char** argv) {
  if (argc < 4) fail("usage");
  want.listens = !strcmp(argv[1], "listen");
  want.address = argv[2];
  want.port = argv[3];
  int i = 4;
  for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
    const char* value = argv[i + 1];
    if (!strcmp(argv[i], "--data")) {
      for (; value[0] && value[1]; value += 2) {
        unsigned octet;
        sscanf(value, "%2x", &octet);
        want.data[want.data_size++] = (uint8_t)octet;
      }
    } else if (!strcmp(argv[i], "--ird")) {
      want.ird = (uint8_t)atoi(value);
    } else if (!strcmp(argv[i], "--ord")) {
      want.ord = (uint8_t)atoi(value);
    } else if (!strcmp(argv[i], "--answer")) {
      want.answer = value;
    } else if (!strcmp(argv[i], "--limit")) {
      want.limit_ms = 1000 * atoi(value);
    } else if (!strcmp(argv[i], "--count")) {
      want.count = atoi(value);
    } else {
      fail("unknown option");
    }
  }
  want.steps = argv + i;
}

int main(int argc, char** argv) {
  parse(argc, argv);
  struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP}, *found;
  if (rdma_getaddrinfo(want.address, want.port, &hints, &found)) fail("rdma_getaddrinfo");
  own.channel = rdma_create_event_channel();
  if (!own.channel) fail("rdma_create_event_channel");
  if (want.listens) {
    run_server(found->ai_dst_addr);
  } else {
    for (int i = 0; i < want.count; ++i) run_client(found->ai_dst_addr);
  }
  rdma_freeaddrinfo(found);
  rdma_destroy_event_channel(own.channel);
  say("{\"event\": \"end\"}");
  return 0;
}
