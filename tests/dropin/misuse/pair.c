// What the cases stand on: a device, memory, a connected pair.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "misuse.h"

static bool is_loopback(struct ibv_context* context) {
  union ibv_gid gid;
  static const uint8_t mapped[13] = {[10] = 0xFF, [11] = 0xFF, [12] = 127};
  return ibv_query_gid(context, 1, 0, &gid) == 0 && memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

static struct ibv_context* open_device(bool loopback) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  REQUIRE(list != NULL);
  struct ibv_context* found = NULL;
  for (size_t i = 0; list[i] != NULL && found == NULL; ++i) {
    struct ibv_context* context = ibv_open_device(list[i]);
    REQUIRE(context != NULL);
    if (is_loopback(context) == loopback) {
      found = context;
    } else {
      CHECK(ibv_close_device(context) == 0);
    }
  }
  ibv_free_device_list(list);
  return found;
}

struct ibv_context* open_loopback(void) {
  struct ibv_context* context = open_device(true);
  REQUIRE(context != NULL);
  return context;
}

struct ibv_context* open_other(void) {
  return open_device(false);
}

struct ibv_sge whole(const struct memory* m, uint32_t length) {
  return (struct ibv_sge){.addr = (uintptr_t)m->octets, .length = length, .lkey = m->mr->lkey};
}

struct rdma_cm_id* expect_event(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = NULL;
  REQUIRE(rdma_get_cm_event(channel, &event) == 0);
  if (event->event != type) {
    char detail[128];
    snprintf(detail, sizeof detail, "%s instead of %s", rdma_event_str(event->event), rdma_event_str(type));
    failed(__FILE__, __LINE__, "event", detail);
    give_up();
  }
  struct rdma_cm_id* id = event->id;
  REQUIRE(rdma_ack_cm_event(event) == 0);
  return id;
}

struct sockaddr_in loopback_address(uint16_t port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

struct rdma_cm_id* resolved_id(struct rdma_event_channel* channel, uint16_t port) {
  struct sockaddr_in to = loopback_address(port);
  struct rdma_cm_id* id = NULL;
  REQUIRE(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  REQUIRE(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 1000) == 0);
  expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  REQUIRE(rdma_resolve_route(id, 1000) == 0);
  expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

static void add_queue_pair(struct rdma_cm_id* id, struct ibv_cq** cq, struct memory* memory, struct ibv_srq* srq,
                           const struct pair_options* options) {
  *cq = ibv_create_cq(id->verbs, options->cq_depth == 0 ? 32 : options->cq_depth, NULL, NULL, 0);
  REQUIRE(*cq != NULL);
  struct ibv_qp_init_attr attributes = {.send_cq = *cq, .recv_cq = *cq, .srq = srq, .cap = options->cap};
  attributes.qp_type = IBV_QPT_RC;
  if (attributes.cap.max_send_wr == 0) attributes.cap.max_send_wr = 8;
  if (attributes.cap.max_recv_wr == 0) attributes.cap.max_recv_wr = 8;
  if (attributes.cap.max_send_sge == 0) attributes.cap.max_send_sge = 2;
  if (attributes.cap.max_recv_sge == 0) attributes.cap.max_recv_sge = 2;
  REQUIRE(rdma_create_qp(id, srq == NULL ? NULL : srq->pd, &attributes) == 0);
  memory->mr = ibv_reg_mr(id->qp->pd, memory->octets, sizeof memory->octets,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  REQUIRE(memory->mr != NULL);
}

void make_pair(struct pair* p, const struct pair_options* options) {
  static const struct pair_options plain;
  if (options == NULL) options = &plain;
  *p = (struct pair){.channel = rdma_create_event_channel()};
  REQUIRE(p->channel != NULL);
  struct sockaddr_in here = loopback_address(0);
  REQUIRE(rdma_create_id(p->channel, &p->listener, NULL, RDMA_PS_TCP) == 0);
  REQUIRE(rdma_bind_addr(p->listener, (struct sockaddr*)&here) == 0);
  REQUIRE(rdma_listen(p->listener, 4) == 0);
  p->client = resolved_id(p->channel, rdma_get_src_port(p->listener));
  add_queue_pair(p->client, &p->client_cq, &p->client_memory, NULL, options);
  if (options->stop_before_connect) return;
  struct rdma_conn_param how = {.responder_resources = 4, .initiator_depth = 4};
  REQUIRE(rdma_connect(p->client, &how) == 0);
  p->server = expect_event(p->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  add_queue_pair(p->server, &p->server_cq, &p->server_memory, options->server_srq, options);
  REQUIRE(rdma_accept(p->server, &how) == 0);
  expect_event(p->channel, RDMA_CM_EVENT_ESTABLISHED);
  expect_event(p->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void drop_side(struct rdma_cm_id* id, struct ibv_cq* cq, struct memory* memory) {
  if (id == NULL) return;
  if (id->qp != NULL) rdma_destroy_qp(id);
  if (cq != NULL) RETURNS(0, ibv_destroy_cq(cq));
  if (memory->mr != NULL) RETURNS(0, ibv_dereg_mr(memory->mr));
  RETURNS(0, rdma_destroy_id(id));
}

void drop_pair(struct pair* p) {
  drop_side(p->client, p->client_cq, &p->client_memory);
  drop_side(p->server, p->server_cq, &p->server_memory);
  RETURNS(0, rdma_destroy_id(p->listener));
  rdma_destroy_event_channel(p->channel);
}

struct ibv_wc next_completion(struct ibv_cq* cq) {
  const time_t end = time(NULL) + 5;
  struct ibv_wc wc;
  int got;
  while ((got = ibv_poll_cq(cq, 1, &wc)) == 0 && time(NULL) < end) {
  }
  REQUIRE(got == 1);
  return wc;
}

int post_recv_one(struct ibv_qp* qp, struct ibv_sge* sge, uint64_t id) {
  struct ibv_recv_wr *bad = NULL, wr = {.wr_id = id, .sg_list = sge, .num_sge = sge == NULL ? 0 : 1};
  const int error = ibv_post_recv(qp, &wr, &bad);
  if (error != 0) CHECK(bad == &wr);
  return error;
}

int post_one(struct ibv_qp* qp, enum ibv_wr_opcode opcode, struct ibv_sge* sge, uint32_t rkey, uint64_t remote) {
  struct ibv_send_wr *bad = NULL, wr = {.wr_id = 77, .sg_list = sge, .num_sge = sge == NULL ? 0 : 1};
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.rkey = rkey;
  wr.wr.rdma.remote_addr = remote;
  const int error = ibv_post_send(qp, &wr, &bad);
  if (error != 0) CHECK(bad == &wr);
  return error;
}
