// Completion queues and channels.
#include "misuse.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>

static void creating(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_device_attr limits;
  RETURNS(0, ibv_query_device(context, &limits));
  NULL_WITH(ANY_ERROR, ibv_create_cq(NULL, 8, NULL, NULL, 0));
  NULL_WITH(EINVAL, ibv_create_cq(context, 0, NULL, NULL, 0));
  NULL_WITH(EINVAL, ibv_create_cq(context, -1, NULL, NULL, 0));
  NULL_WITH(EINVAL, ibv_create_cq(context, 8, NULL, NULL, -1));
  NULL_WITH(EINVAL, ibv_create_cq(context, 8, NULL, NULL, context->num_comp_vectors));
  NULL_WITH(EINVAL, ibv_create_cq(context, limits.max_cqe + 1, NULL, NULL, 0));
  NULL_WITH(EINVAL, ibv_create_cq(context, INT_MAX, NULL, NULL, 0));
  struct ibv_cq_init_attr_ex ex = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG};
  NULL_WITH(EOPNOTSUPP, ibv_create_cq_ex(context, &ex));
  ex = (struct ibv_cq_init_attr_ex){.cqe = 8, .comp_mask = 1U << 30};
  NULL_WITH(ANY_ERROR, ibv_create_cq_ex(context, &ex));
  ex = (struct ibv_cq_init_attr_ex){.cqe = 8};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &ex);
  REQUIRE(cq != NULL);
  struct ibv_poll_cq_attr attributes = {.comp_mask = 1};
  RETURNS(EINVAL, ibv_start_poll(cq, &attributes));
  attributes.comp_mask = 0;
  RETURNS(ENOENT, ibv_start_poll(cq, &attributes));
  RETURNS(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
  RETURNS(ANY_ERROR, ibv_destroy_cq(NULL));
  RETURNS(0, ibv_close_device(context));
}

static void channels(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  REQUIRE(channel != NULL);
  struct ibv_cq* cq = ibv_create_cq(context, 8, &channel, channel, 0);
  REQUIRE(cq != NULL);
  RETURNS(EBUSY, ibv_destroy_comp_channel(channel));
  struct ibv_cq* told = NULL;
  void* user = NULL;
  FAILS(ANY_ERROR, ibv_get_cq_event(NULL, &told, &user));
  REQUIRE(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  FAILS(EAGAIN, ibv_get_cq_event(channel, &told, &user));
  RETURNS(0, ibv_req_notify_cq(cq, 0));
  FAILS(EAGAIN, ibv_get_cq_event(channel, &told, &user));
  struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
  CHECK(poll(&readable, 1, 0) == 0);
  RETURNS(0, ibv_destroy_cq(cq));
  RETURNS(0, ibv_destroy_comp_channel(channel));
  RETURNS(ANY_ERROR, ibv_destroy_comp_channel(NULL));
  REQUIRE(fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK) == 0);
  struct ibv_async_event event;
  FAILS(EAGAIN, ibv_get_async_event(context, &event));
  RETURNS(0, ibv_close_device(context));
}

/// A smaller queue may not lose what is in it.
static void resizing(void) {
  struct pair p;
  make_pair(&p, NULL);
  for (int i = 0; i < 5; ++i) REQUIRE(post_one(p.client->qp, IBV_WR_RDMA_WRITE, NULL, 0, 0) == 0);
  struct pollfd nothing = {.fd = -1};
  for (int i = 0; i < 100 && p.client->qp->state == IBV_QPS_RTS; ++i) poll(&nothing, 1, 1);
  RETURNS(EINVAL, ibv_resize_cq(p.client_cq, 0));
  RETURNS(EINVAL, ibv_resize_cq(p.client_cq, -1));
  RETURNS(EINVAL, ibv_resize_cq(p.client_cq, INT_MAX));
  RETURNS(ANY_ERROR, ibv_resize_cq(NULL, 8));
  RETURNS(EINVAL, ibv_resize_cq(p.client_cq, 2));
  RETURNS(0, ibv_resize_cq(p.client_cq, 4096));
  CHECK(p.client_cq->cqe >= 4096);
  RETURNS(0, ibv_resize_cq(p.client_cq, 8));
  for (int i = 0; i < 5; ++i) CHECK(next_completion(p.client_cq).status == IBV_WC_SUCCESS);
  drop_pair(&p);
}

static void in_use(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  RETURNS(EBUSY, ibv_destroy_cq(p.client_cq));
  struct ibv_wc wc;
  CHECK(ibv_poll_cq(p.client_cq, 0, &wc) == 0);
  CHECK(ibv_poll_cq(p.client_cq, -1, &wc) <= 0);
  drop_pair(&p);
}

/// More completions than fit: IBV_EVENT_CQ_ERR tells it.
static void overrun(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.cq_depth = 2});
  REQUIRE(fcntl(p.client->verbs->async_fd, F_SETFL, O_NONBLOCK) == 0);
  for (int i = 0; i < 8; ++i) (void)post_one(p.client->qp, IBV_WR_RDMA_WRITE, NULL, 0, 0);
  struct pollfd readable = {.fd = p.client->verbs->async_fd, .events = POLLIN};
  REQUIRE(poll(&readable, 1, 3000) == 1);
  struct ibv_async_event event;
  REQUIRE(ibv_get_async_event(p.client->verbs, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == p.client_cq);
  ibv_ack_async_event(&event);
  drop_pair(&p);
}

const struct test_case completion_cases[] = {{"completion: creating", creating}, {"completion: channels", channels},
                                             {"completion: resizing", resizing}, {"completion: queue in use", in_use},
                                             {"completion: overrun", overrun},   {NULL, NULL}};
