// Posting: what is refused at once, and what a completion tells.
#include "misuse.h"

#include <stdlib.h>

static void wrong_state(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  struct ibv_sge sge = whole(&p.client_memory, 8);
  RETURNS(EINVAL, post_one(p.client->qp, IBV_WR_SEND, &sge, 0, 0));
  RETURNS(EINVAL, post_one(p.client->qp, IBV_WR_RDMA_READ, &sge, 0, 0));
  RETURNS(0, post_recv_one(p.client->qp, &sge, 1));  // before the connection, as they must be
  drop_pair(&p);
}

/// Over: what is posted comes back flushed.
static void after_the_end(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 8);
  RETURNS(0, post_recv_one(p.client->qp, &sge, 1));
  RETURNS(0, rdma_disconnect(p.client));
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  struct ibv_qp_attr now;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(p.client->qp, &now, IBV_QP_STATE, &init));
  CHECK(now.qp_state == IBV_QPS_ERR);
  RETURNS(0, ibv_query_qp(p.server->qp, &now, IBV_QP_STATE, &init));
  CHECK(now.qp_state == IBV_QPS_ERR);
  struct ibv_wc wc = next_completion(p.client_cq);
  CHECK(wc.wr_id == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
  RETURNS(0, post_one(p.client->qp, IBV_WR_SEND, &sge, 0, 0));
  wc = next_completion(p.client_cq);
  CHECK(wc.wr_id == 77 && wc.status == IBV_WC_WR_FLUSH_ERR);
  RETURNS(0, post_recv_one(p.client->qp, &sge, 2));
  wc = next_completion(p.client_cq);
  CHECK(wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
  drop_pair(&p);
}

static void too_many_receives(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true, .cap = {.max_recv_wr = 4}});
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(p.client->qp, &attr, IBV_QP_CAP, &init));
  const uint32_t depth = init.cap.max_recv_wr;
  REQUIRE(depth >= 4 && depth < 1000);
  struct ibv_recv_wr* wrs = calloc(depth + 1, sizeof *wrs);
  for (uint32_t i = 0; i < depth; ++i) wrs[i].next = &wrs[i + 1];
  struct ibv_recv_wr* bad = NULL;
  RETURNS(ENOMEM, ibv_post_recv(p.client->qp, wrs, &bad));
  CHECK(bad == &wrs[depth]);
  free(wrs);
  drop_pair(&p);
}

/// Unsignaled requests that nobody takes out: the queue is full when its depth is reached, and works again after.
static void too_many_sends(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.cap = {.max_send_wr = 4}, .cq_depth = 2000});
  struct ibv_send_wr wrs[1001] = {{.wr_id = 0}}, *bad = NULL;
  struct ibv_sge sge = whole(&p.client_memory, 8);
  for (int i = 0; i < 1001; ++i) {
    wrs[i].wr_id = (uint64_t)i;
    wrs[i].opcode = IBV_WR_SEND;
    wrs[i].send_flags = IBV_SEND_SIGNALED;
    wrs[i].sg_list = &sge;
    wrs[i].num_sge = 1;
    wrs[i].next = i == 1000 ? NULL : &wrs[i + 1];
  }
  // A chain far above the depth: the accepted ones are posted, `bad` is the first that was not.
  RETURNS(ENOMEM, ibv_post_send(p.client->qp, wrs, &bad));
  REQUIRE(bad != NULL && bad > wrs && bad < wrs + 1001);
  for (struct ibv_send_wr* wr = wrs; wr != bad; ++wr) {
    const struct ibv_wc wc = next_completion(p.client_cq);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == wr->wr_id);
  }
  RETURNS(0, post_one(p.client->qp, IBV_WR_SEND, &sge, 0, 0));
  CHECK(next_completion(p.client_cq).wr_id == 77);
  drop_pair(&p);
}

static void malformed(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.cap = {.max_send_sge = 2, .max_recv_sge = 2}});
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(p.client->qp, &attr, IBV_QP_CAP, &init));
  struct ibv_sge many[200];
  for (size_t i = 0; i < 200; ++i) many[i] = whole(&p.client_memory, 1);
  struct ibv_send_wr *bad = NULL, wr = {.sg_list = many, .num_sge = (int)init.cap.max_send_sge + 1};
  wr.opcode = IBV_WR_SEND;
  RETURNS(EINVAL, ibv_post_send(p.client->qp, &wr, &bad));
  CHECK(bad == &wr);
  wr.num_sge = 200;
  RETURNS(EINVAL, ibv_post_send(p.client->qp, &wr, &bad));
  wr.num_sge = -1;
  RETURNS(EINVAL, ibv_post_send(p.client->qp, &wr, &bad));
  wr.num_sge = 1;
  wr.sg_list = NULL;
  RETURNS(EINVAL, ibv_post_send(p.client->qp, &wr, &bad));
  struct ibv_recv_wr *bad_receive = NULL, receive = {.sg_list = many, .num_sge = (int)init.cap.max_recv_sge + 1};
  RETURNS(EINVAL, ibv_post_recv(p.client->qp, &receive, &bad_receive));
  CHECK(bad_receive == &receive);
  receive.num_sge = 200;
  RETURNS(EINVAL, ibv_post_recv(p.client->qp, &receive, &bad_receive));
  receive.num_sge = 1;
  receive.sg_list = NULL;
  RETURNS(EINVAL, ibv_post_recv(p.client->qp, &receive, &bad_receive));
  drop_pair(&p);
}

static void operations(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 8);
  // Not these: what a version of this stack has beyond RFC 5040 is told by the device.
  RETURNS(ANY_ERROR, post_one(p.client->qp, IBV_WR_TSO, &sge, 0, 0));
  RETURNS(ANY_ERROR, post_one(p.client->qp, (enum ibv_wr_opcode)99, &sge, 0, 0));
  struct ibv_device_attr device;
  RETURNS(0, ibv_query_device(p.client->verbs, &device));
  if (device.atomic_cap == IBV_ATOMIC_NONE) {
    RETURNS(ANY_ERROR, post_one(p.client->qp, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 0));
    RETURNS(ANY_ERROR, post_one(p.client->qp, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 0, 0));
  }
  // The connection lives on.
  struct ibv_sge into = whole(&p.server_memory, 64);
  RETURNS(0, post_recv_one(p.server->qp, &into, 5));
  RETURNS(0, post_one(p.client->qp, IBV_WR_SEND, &sge, 0, 0));
  CHECK(next_completion(p.server_cq).wr_id == 5);
  drop_pair(&p);
}

/// A chain with a bad one in the middle: those before it are posted, those behind are not.
static void bad_in_the_middle(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 8);
  struct ibv_send_wr wrs[3], *bad = NULL;
  for (int i = 0; i < 3; ++i) {
    wrs[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1};
    wrs[i].opcode = i == 1 ? IBV_WR_TSO : IBV_WR_SEND;
    wrs[i].send_flags = IBV_SEND_SIGNALED;
    wrs[i].next = i == 2 ? NULL : &wrs[i + 1];
  }
  RETURNS(ANY_ERROR, ibv_post_send(p.client->qp, wrs, &bad));
  CHECK(bad == &wrs[1]);
  CHECK(next_completion(p.client_cq).wr_id == 0);
  struct ibv_wc wc;
  CHECK(ibv_poll_cq(p.client_cq, 1, &wc) == 0);
  drop_pair(&p);
}

static void inline_data(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.cap = {.max_inline_data = 64}});
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(p.client->qp, &attr, IBV_QP_CAP, &init));
  REQUIRE(init.cap.max_inline_data >= 64 && init.cap.max_inline_data < sizeof p.client_memory.octets);
  // Its key is not looked at.
  struct ibv_sge sge = {(uintptr_t)p.client_memory.octets, init.cap.max_inline_data, 0xDEAD};
  struct ibv_send_wr *bad = NULL, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  RETURNS(0, ibv_post_send(p.client->qp, &wr, &bad));
  CHECK(next_completion(p.client_cq).status == IBV_WC_SUCCESS);
  ++sge.length;
  const int error = ibv_post_send(p.client->qp, &wr, &bad);
  CHECK(error == EINVAL || error == ENOMEM);
  CHECK(bad == &wr);
  drop_pair(&p);
}

const struct test_case posting_cases[] = {{"posting: before the connection", wrong_state},
                                          {"posting: after the end", after_the_end},
                                          {"posting: more receives than its depth", too_many_receives},
                                          {"posting: more sends than its depth", too_many_sends},
                                          {"posting: wrong element lists", malformed},
                                          {"posting: operations that are not", operations},
                                          {"posting: a bad request in the middle", bad_in_the_middle},
                                          {"posting: inline data", inline_data},
                                          {NULL, NULL}};
