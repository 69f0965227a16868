/* A program of one process that misuses the calls of libibverbs and librdmacm, built against Debian's headers and run
   by iwarp-run: each gets the errno or return value that the manual pages name, and nothing crashes. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;
#define CHECK(what)                                                                       \
  do {                                                                                    \
    errno = 0;                                                                            \
    if (!(what)) {                                                                        \
      printf("calls.c:%d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); \
      ++failures;                                                                         \
    }                                                                                     \
  } while (0)

static struct ibv_qp* make_qp(struct ibv_pd* pd, struct ibv_cq* cq, uint32_t sends, uint32_t receives) {
  struct ibv_qp_init_attr a = {
      .send_cq = cq,
      .recv_cq = cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 2, .max_recv_sge = 2}};
  return ibv_create_qp(pd, &a);
}

static void devices(void) {
  int n = -1;
  struct ibv_device** list = ibv_get_device_list(&n);
  CHECK(list != NULL && n > 0 && list[n] == NULL);
  ibv_free_device_list(list);
  CHECK(ibv_open_device(NULL) == NULL && errno == EINVAL);
  CHECK(ibv_close_device(NULL) != 0);
  CHECK(ibv_get_device_name(NULL) == NULL);
  CHECK(ibv_alloc_pd(NULL) == NULL && errno == EINVAL);
  CHECK(ibv_create_comp_channel(NULL) == NULL);
}

static void memory(struct ibv_context* c, struct ibv_pd* pd) {
  static char buffer[4096];
  CHECK(ibv_reg_mr(NULL, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EINVAL);
  CHECK(ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
  CHECK(ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_ON_DEMAND) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_reg_mr(pd, (void*)8, 4096, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
  CHECK(ibv_reg_mr(pd, (void*)"constant", 8, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
  struct ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  CHECK(mr != NULL && mr->lkey == mr->rkey && mr->lkey != 0);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) != 0);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) ==
        0);
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_dereg_mr(NULL) == EINVAL);
  CHECK(ibv_alloc_mw(pd, IBV_MW_TYPE_1) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_alloc_null_mr(pd) == NULL && errno == EOPNOTSUPP);
  struct ibv_ah_attr ah = {0};
  CHECK(ibv_create_ah(pd, &ah) == NULL && errno == EOPNOTSUPP);
  union ibv_gid gid;
  CHECK(ibv_query_gid(c, 1, 0, &gid) == 0 && ibv_query_gid(c, 1, 1, &gid) != 0 && ibv_query_gid(c, 2, 0, &gid) != 0);
}

static void queues(struct ibv_context* c, struct ibv_pd* pd) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(c);
  CHECK(ibv_create_cq(c, 0, NULL, NULL, 0) == NULL && errno == EINVAL);
  CHECK(ibv_create_cq(c, 10, NULL, NULL, 7) == NULL && errno == EINVAL);
  struct ibv_cq* cq = ibv_create_cq(c, 10, &failures, channel, 0);
  CHECK(cq != NULL && cq->cqe >= 10);
  CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
  CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  struct ibv_cq* got;
  void* user;
  CHECK(ibv_get_cq_event(channel, &got, &user) == -1 && errno == EAGAIN);
  CHECK(ibv_resize_cq(cq, 100) == 0 && cq->cqe >= 100);
  CHECK(ibv_resize_cq(cq, 0) == EINVAL);
  struct ibv_wc wc;
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0);

  struct ibv_qp_init_attr ud = {
      .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
  CHECK(ibv_create_qp(pd, &ud) == NULL && errno == EOPNOTSUPP);
  struct ibv_qp_init_attr none = {.qp_type = IBV_QPT_RC};
  CHECK(ibv_create_qp(pd, &none) == NULL && errno == EINVAL);
  struct ibv_qp* qp = make_qp(pd, cq, 4, 2);
  CHECK(qp != NULL);
  CHECK(ibv_destroy_cq(cq) == EBUSY);
  CHECK(ibv_qp_to_qp_ex(qp) == NULL);

  /* Posting in the wrong state, and more than fits. */
  char octet = 0;
  struct ibv_sge sge = {.addr = (uintptr_t)&octet, .length = 1, .lkey = 1};
  struct ibv_send_wr send = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send = NULL;
  CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL && bad_send == &send);
  struct ibv_recv_wr third = {.wr_id = 3}, second = {.wr_id = 2, .next = &third}, first = {.wr_id = 1, .next = &second},
                     *bad = NULL;
  CHECK(ibv_post_recv(qp, &first, &bad) == ENOMEM && bad == &third);
  struct ibv_sge three[3] = {sge, sge, sge};
  struct ibv_recv_wr wide = {.sg_list = three, .num_sge = 3};
  CHECK(ibv_post_recv(qp, &wide, &bad) == EINVAL && bad == &wide);
  struct ibv_recv_wr negative = {.num_sge = -1};
  CHECK(ibv_post_recv(qp, &negative, &bad) == EINVAL && bad == &negative);

  struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS}, was;
  struct ibv_qp_init_attr init;
  CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE) == EINVAL);
  a.qp_state = IBV_QPS_INIT;
  CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0);
  CHECK(ibv_query_qp(qp, &was, IBV_QP_STATE, &init) == 0 && was.qp_state == IBV_QPS_INIT && init.cap.max_send_wr >= 4);
  a.qp_state = IBV_QPS_ERR;
  CHECK(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0);
  CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 1);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_poll_cq(cq, 1, &wc) == 0); /* its completions went with it */
  CHECK(ibv_destroy_qp(NULL) == EINVAL);

  struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &srq_attr);
  CHECK(srq != NULL);
  struct ibv_srq_attr limit = {.srq_limit = 5};
  CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == EINVAL);
  /* A limit above what is posted is reached at once. */
  limit.srq_limit = 3;
  CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
  struct ibv_async_event event;
  CHECK(ibv_get_async_event(c, &event) == 0 && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED &&
        event.element.srq == srq);
  ibv_ack_async_event(&event);
  CHECK(ibv_destroy_srq(srq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

static void extended(struct ibv_context* c, struct ibv_pd* pd) {
  struct ibv_cq_init_attr_ex ca = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(c, &ca);
  CHECK(cq != NULL);
  ca.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  CHECK(ibv_create_cq_ex(c, &ca) == NULL && errno == EOPNOTSUPP);
  struct ibv_poll_cq_attr pa = {0};
  CHECK(ibv_start_poll(cq, &pa) == ENOENT);
  struct ibv_qp_init_attr_ex qa = {.send_cq = ibv_cq_ex_to_cq(cq),
                                   .recv_cq = ibv_cq_ex_to_cq(cq),
                                   .qp_type = IBV_QPT_RC,
                                   .pd = pd,
                                   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                   .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
                                   .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp* qp = ibv_create_qp_ex(c, &qa);
  CHECK(qp != NULL);
  struct ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  CHECK(ex != NULL);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_abort(ex);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  CHECK(ibv_wr_complete(ex) == EINVAL); /* not connected */
  ibv_wr_start(ex);
  ibv_wr_atomic_fetch_add(ex, 1, 0, 1);
  CHECK(ibv_wr_complete(ex) == EOPNOTSUPP);
  CHECK(ibv_destroy_qp(qp) == 0);
  qa.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  CHECK(ibv_create_qp_ex(c, &qa) == NULL && errno == EOPNOTSUPP);
  CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

static void manager(void) {
  struct rdma_cm_id *id = NULL, *other = NULL;
  CHECK(rdma_create_id(NULL, NULL, NULL, RDMA_PS_TCP) == -1 && errno == EINVAL);
  struct rdma_event_channel* channel = rdma_create_event_channel();
  CHECK(channel != NULL);
  CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  struct rdma_cm_event* event;
  CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
  CHECK(rdma_connect(id, NULL) == -1 && errno == EINVAL);
  CHECK(rdma_accept(id, NULL) == -1 && errno == EINVAL);
  CHECK(rdma_reject(id, NULL, 0) == -1 && errno == EINVAL);
  CHECK(rdma_disconnect(id) == -1 && errno == EINVAL);
  CHECK(rdma_resolve_route(id, 1000) == -1 && errno == EINVAL);
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, foreign = loopback,
                     port;
  foreign.sin_addr.s_addr = inet_addr("203.0.113.7");
  CHECK(rdma_bind_addr(id, (struct sockaddr*)&foreign) == -1 && errno == ENODEV);
  CHECK(rdma_bind_addr(id, (struct sockaddr*)&loopback) == 0 && rdma_get_src_port(id) != 0 && id->verbs != NULL);
  CHECK(rdma_bind_addr(id, (struct sockaddr*)&loopback) == -1 && errno == EINVAL);
  CHECK(rdma_listen(id, 1) == 0);
  port = loopback;
  port.sin_port = rdma_get_src_port(id);
  CHECK(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(other, (struct sockaddr*)&port) == -1 && errno == EADDRINUSE);
  int value = 1;
  CHECK(rdma_set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof value) == 0);
  CHECK(rdma_set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, 1) == -1 && errno == EINVAL);
  CHECK(rdma_set_option(other, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &value, sizeof value) == -1 && errno == ENOSYS);
  CHECK(rdma_join_multicast(other, (struct sockaddr*)&loopback, NULL) == -1 && errno == EOPNOTSUPP);
  CHECK(rdma_destroy_id(other) == 0);
  CHECK(rdma_destroy_id(id) == 0); /* and the port is free at once */
  CHECK(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(other, (struct sockaddr*)&port) == 0 && rdma_listen(other, 1) == 0);
  CHECK(rdma_destroy_id(other) == 0);

  /* Nobody listens. */
  CHECK(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_resolve_addr(other, NULL, (struct sockaddr*)&port, 1000) == 0 && rdma_resolve_route(other, 1000) == 0);
  struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
  CHECK(rdma_create_qp(other, NULL, &a) == 0 && other->qp != NULL && other->send_cq != NULL);
  CHECK(rdma_create_qp(other, NULL, &a) == -1 && errno == EINVAL);
  CHECK(rdma_connect(other, NULL) == -1 && errno == ECONNREFUSED);
  rdma_destroy_qp(other);
  CHECK(rdma_destroy_id(other) == 0);
  rdma_destroy_event_channel(channel);
}

/* A child that only ends, and one that uses RDMA itself. */
static void children(void) {
  for (int uses = 0; uses != 2; ++uses) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      struct rdma_cm_id* id = NULL;
      if (uses && (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0 || rdma_destroy_id(id) != 0)) exit(1);
      exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

int main(void) {
  devices();
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* c = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  struct ibv_pd* pd = ibv_alloc_pd(c);
  memory(c, pd);
  queues(c, pd);
  extended(c, pd);
  manager();
  children();
  CHECK(ibv_dealloc_pd(pd) == 0);
  CHECK(ibv_close_device(c) == 0);
  return failures == 0 ? 0 : 1;
}
