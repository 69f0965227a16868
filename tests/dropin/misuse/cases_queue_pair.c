// Queue pairs and shared receive queues: creation, states, destruction.
#include "misuse.h"

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;

static void open_all(void) {
  context = open_loopback();
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 32, NULL, NULL, 0);
  REQUIRE(pd != NULL && cq != NULL);
}
static void close_all(void) {
  RETURNS(0, ibv_destroy_cq(cq));
  RETURNS(0, ibv_dealloc_pd(pd));
  RETURNS(0, ibv_close_device(context));
}

static struct ibv_qp_init_attr usual(void) {
  struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq};
  a.qp_type = IBV_QPT_RC;
  a.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
  return a;
}

static void creating(void) {
  open_all();
  struct ibv_device_attr limits;
  RETURNS(0, ibv_query_device(context, &limits));
  struct ibv_qp_init_attr a = usual();
  NULL_WITH(ANY_ERROR, ibv_create_qp(NULL, &a));
  a.send_cq = NULL;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.recv_cq = NULL;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_send_wr = (uint32_t)limits.max_qp_wr + 1;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_recv_wr = UINT32_MAX;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_send_sge = (uint32_t)limits.max_sge + 1;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_recv_sge = (uint32_t)limits.max_sge + 1;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_inline_data = UINT32_MAX;
  NULL_WITH(EINVAL, ibv_create_qp(pd, &a));
  a = usual();
  a.cap.max_send_wr = (uint32_t)limits.max_qp_wr;
  a.cap.max_send_sge = (uint32_t)limits.max_sge;
  struct ibv_qp* greatest = ibv_create_qp(pd, &a);
  CHECK(greatest != NULL && a.cap.max_send_wr >= (uint32_t)limits.max_qp_wr);
  if (greatest != NULL) RETURNS(0, ibv_destroy_qp(greatest));
  RETURNS(ANY_ERROR, ibv_destroy_qp(NULL));
  close_all();
}

static void other_types(void) {
  open_all();
  static const enum ibv_qp_type types[] = {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, 99};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    struct ibv_qp_init_attr a = usual();
    a.qp_type = types[i];
    NULL_WITH(ANY_ERROR, ibv_create_qp(pd, &a));
  }
  close_all();
}

static void other_device(void) {
  open_all();
  struct ibv_context* other = open_other();
  if (other != NULL) {
    struct ibv_pd* foreign = ibv_alloc_pd(other);
    struct ibv_qp_init_attr a = usual();
    NULL_WITH(EINVAL, ibv_create_qp(foreign, &a));
    RETURNS(0, ibv_dealloc_pd(foreign));
    RETURNS(0, ibv_close_device(other));
  }
  close_all();
}

static void in_use(void) {
  open_all();
  struct ibv_qp_init_attr a = usual();
  struct ibv_qp* qp = ibv_create_qp(pd, &a);
  REQUIRE(qp != NULL);
  RETURNS(EBUSY, ibv_dealloc_pd(pd));
  RETURNS(EBUSY, ibv_destroy_cq(cq));
  RETURNS(0, ibv_destroy_qp(qp));
  close_all();
}

static int to_state(struct ibv_qp* qp, enum ibv_qp_state state) {
  struct ibv_qp_attr a = {.port_num = 1};
  a.qp_state = state;
  return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

static void states(void) {
  open_all();
  struct ibv_qp_init_attr a = usual();
  struct ibv_qp* qp = ibv_create_qp(pd, &a);
  REQUIRE(qp != NULL);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  RETURNS(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
  CHECK(attr.qp_state == IBV_QPS_RESET);
  RETURNS(ANY_ERROR, ibv_modify_qp(NULL, &attr, 0));
  RETURNS(ANY_ERROR, ibv_modify_qp(qp, NULL, IBV_QP_STATE));
  RETURNS(ANY_ERROR, ibv_query_qp(qp, NULL, 0, &init));
  RETURNS(EINVAL, to_state(qp, IBV_QPS_RTS));
  RETURNS(EINVAL, to_state(qp, IBV_QPS_SQD));
  RETURNS(EINVAL, to_state(qp, IBV_QPS_SQE));
  RETURNS(EINVAL, to_state(qp, (enum ibv_qp_state)99));
  CHECK(qp->state == IBV_QPS_RESET);
  RETURNS(0, to_state(qp, IBV_QPS_INIT));
  RETURNS(EINVAL, to_state(qp, IBV_QPS_RTS));
  RETURNS(0, to_state(qp, IBV_QPS_ERR));
  RETURNS(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
  CHECK(attr.qp_state == IBV_QPS_ERR);
  RETURNS(0, to_state(qp, IBV_QPS_RESET));
  RETURNS(0, to_state(qp, IBV_QPS_INIT));
  RETURNS(0, ibv_destroy_qp(qp));
  close_all();
}

static void states_of_connected(void) {
  struct pair p;
  make_pair(&p, NULL);
  RETURNS(EINVAL, to_state(p.client->qp, IBV_QPS_INIT));
  RETURNS(0, to_state(p.client->qp, IBV_QPS_RTS));
  CHECK(p.client->qp->state == IBV_QPS_RTS);
  RETURNS(0, to_state(p.client->qp, IBV_QPS_ERR));
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  drop_pair(&p);
}

static void shared_receive_queues(void) {
  open_all();
  struct ibv_device_attr limits;
  RETURNS(0, ibv_query_device(context, &limits));
  struct ibv_srq_init_attr a = {.attr = {.max_wr = 4, .max_sge = 1}};
  NULL_WITH(ANY_ERROR, ibv_create_srq(NULL, &a));
  a.attr.max_wr = (uint32_t)limits.max_srq_wr + 1;
  NULL_WITH(EINVAL, ibv_create_srq(pd, &a));
  a.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = (uint32_t)limits.max_srq_sge + 1};
  NULL_WITH(EINVAL, ibv_create_srq(pd, &a));
  a.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = 1};
  struct ibv_srq* srq = ibv_create_srq(pd, &a);
  REQUIRE(srq != NULL);
  RETURNS(EBUSY, ibv_dealloc_pd(pd));
  struct ibv_srq_attr now = {.srq_limit = a.attr.max_wr + 1};
  RETURNS(EINVAL, ibv_modify_srq(srq, &now, IBV_SRQ_LIMIT));
  RETURNS(ANY_ERROR, ibv_modify_srq(NULL, &now, IBV_SRQ_LIMIT));
  RETURNS(ANY_ERROR, ibv_query_srq(srq, NULL));
  struct ibv_qp_init_attr q = usual();
  q.srq = srq;
  struct ibv_qp* qp = ibv_create_qp(pd, &q);
  REQUIRE(qp != NULL);
  RETURNS(EBUSY, ibv_destroy_srq(srq));
  RETURNS(EINVAL, post_recv_one(qp, NULL, 1));
  struct ibv_recv_wr *bad = NULL, wrs[5] = {{.wr_id = 0}};
  for (int i = 0; i < 4; ++i) wrs[i].next = &wrs[i + 1];
  RETURNS(ENOMEM, ibv_post_srq_recv(srq, wrs, &bad));
  CHECK(bad == &wrs[4]);
  struct ibv_sge two[2] = {{0}};
  struct ibv_recv_wr wide = {.sg_list = two, .num_sge = 2};
  RETURNS(EINVAL, ibv_post_srq_recv(srq, &wide, &bad));
  RETURNS(0, ibv_destroy_qp(qp));
  RETURNS(0, ibv_destroy_srq(srq));
  RETURNS(ANY_ERROR, ibv_destroy_srq(NULL));
  close_all();
}

const struct test_case queue_pair_cases[] = {{"queue pair: creating", creating},
                                             {"queue pair: types that iWARP lacks", other_types},
                                             {"queue pair: another device's domain", other_device},
                                             {"queue pair: what it uses", in_use},
                                             {"queue pair: states", states},
                                             {"queue pair: states of a connected one", states_of_connected},
                                             {"shared receive queue", shared_receive_queues},
                                             {NULL, NULL}};
