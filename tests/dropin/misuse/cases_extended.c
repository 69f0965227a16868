// ibv_create_qp_ex and the calls that build requests.
#include "misuse.h"

struct extended {
  struct pair pair;
  struct ibv_cq* cq;
  struct ibv_qp_ex* qp;
};

/// A client whose queue pair is an extended one, and its plain server.
static void make_extended(struct extended* e, uint64_t operations) {
  struct pair* p = &e->pair;
  make_pair(p, &(struct pair_options){.stop_before_connect = true});
  rdma_destroy_qp(p->client);
  struct ibv_qp_init_attr_ex a = {.send_cq = p->client_cq, .recv_cq = p->client_cq};
  a.qp_type = IBV_QPT_RC;
  a.cap = (struct ibv_qp_cap){4, 4, 2, 2, 64};
  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  a.pd = p->client_memory.mr->pd;
  a.send_ops_flags = operations;
  REQUIRE(rdma_create_qp_ex(p->client, &a) == 0);
  e->qp = ibv_qp_to_qp_ex(p->client->qp);
  REQUIRE(e->qp != NULL);
  REQUIRE(rdma_connect(p->client, NULL) == 0);
  p->server = expect_event(p->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  p->server_cq = ibv_create_cq(p->server->verbs, 8, NULL, NULL, 0);
  struct ibv_qp_init_attr plain = {.send_cq = p->server_cq, .recv_cq = p->server_cq, .cap = {4, 4, 1, 1, 0}};
  plain.qp_type = IBV_QPT_RC;
  REQUIRE(rdma_create_qp(p->server, NULL, &plain) == 0);
  REQUIRE(rdma_accept(p->server, NULL) == 0);
  expect_event(p->channel, RDMA_CM_EVENT_ESTABLISHED);
  expect_event(p->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void creating(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  CHECK(ibv_qp_to_qp_ex(p.client->qp) == NULL);  // not asked for
  struct ibv_qp_init_attr_ex a = {.send_cq = p.client_cq, .recv_cq = p.client_cq};
  a.qp_type = IBV_QPT_RC;
  a.cap = (struct ibv_qp_cap){4, 4, 1, 1, 0};
  NULL_WITH(EINVAL, ibv_create_qp_ex(p.client->verbs, &a));  // no protection domain
  a.pd = p.client_memory.mr->pd;
  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  a.send_ops_flags = 1ULL << 60;
  NULL_WITH(EOPNOTSUPP, ibv_create_qp_ex(p.client->verbs, &a));
  a.send_ops_flags = IBV_QP_EX_WITH_TSO;
  NULL_WITH(EOPNOTSUPP, ibv_create_qp_ex(p.client->verbs, &a));
  a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
  NULL_WITH(EOPNOTSUPP, ibv_create_qp_ex(p.client->verbs, &a));
  drop_pair(&p);
}

/// Nothing of a batch is posted when a part of it is wrong.
static void batches(void) {
  struct extended e;
  make_extended(&e, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  struct memory* m = &e.pair.client_memory;
  e.qp->wr_flags = IBV_SEND_SIGNALED;

  ibv_wr_start(e.qp);
  e.qp->wr_id = 1;
  ibv_wr_send(e.qp);
  ibv_wr_set_sge(e.qp, m->mr->lkey, (uintptr_t)m->octets, 8);
  e.qp->wr_id = 2;
  ibv_wr_send(e.qp);
  ibv_wr_set_inline_data(e.qp, m->octets, sizeof m->octets);  // far too long
  RETURNS(ANY_ERROR, ibv_wr_complete(e.qp));

  ibv_wr_start(e.qp);
  for (int i = 0; i < 5; ++i) {  // one more than its depth
    ibv_wr_send(e.qp);
    ibv_wr_set_sge(e.qp, m->mr->lkey, (uintptr_t)m->octets, 8);
  }
  RETURNS(ENOMEM, ibv_wr_complete(e.qp));

  ibv_wr_start(e.qp);
  ibv_wr_send(e.qp);
  ibv_wr_set_sge(e.qp, m->mr->lkey, (uintptr_t)m->octets, 8);
  ibv_wr_abort(e.qp);

  struct ibv_wc wc;
  CHECK(ibv_poll_cq(e.pair.client_cq, 1, &wc) == 0);

  ibv_wr_start(e.qp);
  RETURNS(0, ibv_wr_complete(e.qp));  // an empty one is fine

  ibv_wr_start(e.qp);
  e.qp->wr_id = 9;
  ibv_wr_send(e.qp);
  ibv_wr_set_inline_data(e.qp, m->octets, 64);
  RETURNS(0, ibv_wr_complete(e.qp));
  wc = next_completion(e.pair.client_cq);
  CHECK(wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS);
  drop_pair(&e.pair);
}

static void not_asked_for(void) {
  struct extended e;
  make_extended(&e, IBV_QP_EX_WITH_SEND);
  ibv_wr_start(e.qp);
  ibv_wr_send_tso(e.qp, NULL, 0, 0);
  RETURNS(ANY_ERROR, ibv_wr_complete(e.qp));
  drop_pair(&e.pair);
}

const struct test_case extended_cases[] = {{"extended: creating", creating},
                                           {"extended: a batch is posted whole or not at all", batches},
                                           {"extended: operations that are not", not_asked_for},
                                           {NULL, NULL}};
