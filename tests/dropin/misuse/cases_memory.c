// Protection domains and regions.
#include "misuse.h"

#include <stdlib.h>

static unsigned char octets[4096];

static void registering(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  NULL_WITH(ANY_ERROR, ibv_reg_mr(NULL, octets, sizeof octets, IBV_ACCESS_LOCAL_WRITE));
  NULL_WITH(EINVAL, ibv_reg_mr(pd, octets, sizeof octets, IBV_ACCESS_REMOTE_WRITE));
  NULL_WITH(ANY_ERROR, ibv_reg_mr(pd, octets, sizeof octets, IBV_ACCESS_REMOTE_ATOMIC));
  NULL_WITH(ANY_ERROR, ibv_reg_mr(pd, octets, sizeof octets, 1 << 19));
  // An optional right that is not known must not be in the way.
  struct ibv_mr* mr = ibv_reg_mr(pd, octets, sizeof octets, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  REQUIRE(mr != NULL);
  RETURNS(EBUSY, ibv_dealloc_pd(pd));
  RETURNS(0, ibv_dereg_mr(mr));
  RETURNS(0, ibv_dealloc_pd(pd));
  RETURNS(ANY_ERROR, ibv_dealloc_pd(NULL));
  RETURNS(ANY_ERROR, ibv_dereg_mr(NULL));
  RETURNS(0, ibv_close_device(context));
}

/// Memory that cannot be: nothing is registered, or a later use fails; nothing may crash.
static void impossible_memory(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  NULL_WITH(ANY_ERROR, ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
  NULL_WITH(ANY_ERROR, ibv_reg_mr(pd, octets, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
  RETURNS(0, ibv_dealloc_pd(pd));
  RETURNS(0, ibv_close_device(context));
}

static void reregistering(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_mr* mr = ibv_reg_mr(pd, octets, 1024, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(mr != NULL);
  const uint32_t key = mr->lkey;
  RETURNS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0));
  RETURNS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, 1 << 20, NULL, NULL, 0, 0));
  RETURNS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0));
  RETURNS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 1024, 0));
  RETURNS(IBV_REREG_MR_ERR_INPUT, ibv_rereg_mr(NULL, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
  CHECK(mr->lkey == key && mr->length == 1024);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) != 0);
  RETURNS(0, ibv_dereg_mr(mr));
  RETURNS(0, ibv_dealloc_pd(pd));
  RETURNS(0, ibv_close_device(context));
}

// Own memory that a request names wrongly: the completion says LOC_PROT_ERR.

static enum ibv_wc_status send_of(struct pair* p, struct ibv_sge sge) {
  REQUIRE(post_one(p->client->qp, IBV_WR_SEND, &sge, 0, 0) == 0);
  return next_completion(p->client_cq).status;
}

static void freed_key(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 64);
  RETURNS(0, ibv_dereg_mr(p.client_memory.mr));
  p.client_memory.mr = NULL;
  CHECK(send_of(&p, sge) == IBV_WC_LOC_PROT_ERR);
  drop_pair(&p);
}

static void foreign_domain(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_pd* pd = ibv_alloc_pd(p.client->verbs);
  struct ibv_mr* mr = ibv_reg_mr(pd, octets, sizeof octets, IBV_ACCESS_LOCAL_WRITE);
  CHECK(send_of(&p, (struct ibv_sge){(uintptr_t)octets, 64, mr->lkey}) == IBV_WC_LOC_PROT_ERR);
  RETURNS(0, ibv_dereg_mr(mr));
  RETURNS(0, ibv_dealloc_pd(pd));
  drop_pair(&p);
}

static void out_of_bounds(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, sizeof p.client_memory.octets + 1);
  CHECK(send_of(&p, sge) == IBV_WC_LOC_PROT_ERR);
  drop_pair(&p);
}

static void before_its_begin(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 64);
  --sge.addr;
  CHECK(send_of(&p, sge) == IBV_WC_LOC_PROT_ERR);
  drop_pair(&p);
}

static void receive_without_right(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_mr* mr = ibv_reg_mr(p.server->qp->pd, octets, sizeof octets, 0);
  REQUIRE(mr != NULL);
  struct ibv_sge into = {(uintptr_t)octets, 64, mr->lkey};
  REQUIRE(post_recv_one(p.server->qp, &into, 1) == 0);
  struct ibv_sge from = whole(&p.client_memory, 64);
  REQUIRE(post_one(p.client->qp, IBV_WR_SEND, &from, 0, 0) == 0);
  CHECK(next_completion(p.server_cq).status == IBV_WC_LOC_PROT_ERR);
  for (size_t i = 0; i < 64; ++i) REQUIRE(octets[i] == 0);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(p.server);
  RETURNS(0, ibv_dereg_mr(mr));
  drop_pair(&p);
}

static void receive_too_short(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge into = whole(&p.server_memory, 63);
  REQUIRE(post_recv_one(p.server->qp, &into, 1) == 0);
  struct ibv_sge from = whole(&p.client_memory, 64);
  REQUIRE(post_one(p.client->qp, IBV_WR_SEND, &from, 0, 0) == 0);
  CHECK(next_completion(p.server_cq).status == IBV_WC_LOC_LEN_ERR);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  drop_pair(&p);
}

// The peer's memory: the connection ends, and nothing was stored.

static void remote(enum ibv_wr_opcode opcode, int rights, uint32_t key_change, uint64_t offset) {
  struct pair p;
  make_pair(&p, NULL);
  static unsigned char far[256];
  struct ibv_mr* mr = ibv_reg_mr(p.server->qp->pd, far, sizeof far, rights);
  REQUIRE(mr != NULL);
  memset(p.client_memory.octets, 0xAB, 64);
  struct ibv_sge sge = whole(&p.client_memory, 64);
  REQUIRE(post_one(p.client->qp, opcode, &sge, mr->rkey ^ key_change, (uintptr_t)far + offset) == 0);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  for (size_t i = 0; i < sizeof far; ++i) REQUIRE(far[i] == 0);
  const struct ibv_wc wc = next_completion(p.client_cq);
  // A Write is complete when it is sent; a Read is what was refused.
  CHECK(opcode == IBV_WR_RDMA_WRITE || wc.status == IBV_WC_REM_ACCESS_ERR);
  struct ibv_qp_attr now;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(p.client->qp, &now, IBV_QP_STATE, &init));
  CHECK(now.qp_state == IBV_QPS_ERR);
  rdma_destroy_qp(p.server);
  RETURNS(0, ibv_dereg_mr(mr));
  drop_pair(&p);
}
static void write_without_right(void) { remote(IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE, 0, 0); }
static void write_wrong_key(void) {
  remote(IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0x80, 0);
}
static void write_behind_end(void) {
  remote(IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0, 193);
}
static void read_without_right(void) { remote(IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE, 0, 0); }
static void read_wrong_key(void) { remote(IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 0x8000, 0); }
static void read_behind_end(void) { remote(IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 0, 193); }

const struct test_case memory_cases[] = {{"memory: registering", registering},
                                         {"memory: that cannot be", impossible_memory},
                                         {"memory: registering anew", reregistering},
                                         {"memory: freed key", freed_key},
                                         {"memory: another protection domain", foreign_domain},
                                         {"memory: behind the end", out_of_bounds},
                                         {"memory: before the begin", before_its_begin},
                                         {"memory: receive without the right", receive_without_right},
                                         {"memory: receive too short", receive_too_short},
                                         {"memory: Write without the right", write_without_right},
                                         {"memory: Write with a wrong key", write_wrong_key},
                                         {"memory: Write behind the end", write_behind_end},
                                         {"memory: Read without the right", read_without_right},
                                         {"memory: Read with a wrong key", read_wrong_key},
                                         {"memory: Read behind the end", read_behind_end},
                                         {NULL, NULL}};
