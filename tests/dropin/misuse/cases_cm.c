// The connection manager: calls in the wrong state, with wrong addresses, and ends at any moment.
#include "misuse.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

static struct rdma_event_channel* make_channel(void) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  REQUIRE(channel != NULL);
  return channel;
}
static struct rdma_cm_id* make_id(struct rdma_event_channel* channel) {
  struct rdma_cm_id* id = NULL;
  REQUIRE(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  return id;
}

static void null_handles(void) {
  struct rdma_event_channel* channel = make_channel();
  struct rdma_cm_id* id = NULL;
  struct rdma_cm_event* event = NULL;
  struct sockaddr_in here = loopback_address(0);
  FAILS(ANY_ERROR, rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP));
  FAILS(ANY_ERROR, rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x7777));
  FAILS(ANY_ERROR, rdma_bind_addr(NULL, (struct sockaddr*)&here));
  FAILS(ANY_ERROR, rdma_resolve_addr(NULL, NULL, (struct sockaddr*)&here, 100));
  FAILS(ANY_ERROR, rdma_resolve_route(NULL, 100));
  FAILS(ANY_ERROR, rdma_listen(NULL, 1));
  FAILS(ANY_ERROR, rdma_connect(NULL, NULL));
  FAILS(ANY_ERROR, rdma_accept(NULL, NULL));
  FAILS(ANY_ERROR, rdma_reject(NULL, NULL, 0));
  FAILS(ANY_ERROR, rdma_disconnect(NULL));
  FAILS(ANY_ERROR, rdma_destroy_id(NULL));
  FAILS(ANY_ERROR, rdma_get_cm_event(NULL, &event));
  FAILS(ANY_ERROR, rdma_ack_cm_event(NULL));
  FAILS(ANY_ERROR, rdma_create_ep(&id, NULL, NULL, NULL));
  FAILS(ANY_ERROR, rdma_get_request(NULL, &id));
  FAILS(ANY_ERROR, rdma_migrate_id(NULL, channel));
  FAILS(ANY_ERROR, rdma_set_option(NULL, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &id, 1));
  struct rdma_addrinfo* found = NULL;
  CHECK(rdma_getaddrinfo(NULL, NULL, NULL, &found) != 0);
  rdma_freeaddrinfo(NULL);
  rdma_destroy_event_channel(channel);
}

static void wrong_order(void) {
  struct rdma_event_channel* channel = make_channel();
  struct rdma_cm_id* id = make_id(channel);
  struct ibv_qp_init_attr a = {.cap = {4, 4, 1, 1, 0}};
  a.qp_type = IBV_QPT_RC;
  FAILS(EINVAL, rdma_create_qp(id, NULL, &a));
  FAILS(EINVAL, rdma_resolve_route(id, 100));
  FAILS(EINVAL, rdma_connect(id, NULL));
  FAILS(EINVAL, rdma_accept(id, NULL));
  FAILS(EINVAL, rdma_reject(id, NULL, 0));
  FAILS(EINVAL, rdma_disconnect(id));
  FAILS(EINVAL, rdma_get_request(id, &id));  // its calls do not wait
  struct sockaddr_in here = loopback_address(0);
  RETURNS(0, rdma_bind_addr(id, (struct sockaddr*)&here));
  FAILS(EINVAL, rdma_bind_addr(id, (struct sockaddr*)&here));
  FAILS(EINVAL, rdma_connect(id, NULL));
  RETURNS(0, rdma_listen(id, 1));
  FAILS(EINVAL, rdma_listen(id, 1));
  FAILS(EINVAL, rdma_connect(id, NULL));
  FAILS(EINVAL, rdma_resolve_addr(id, NULL, (struct sockaddr*)&here, 100));
  RETURNS(0, rdma_destroy_id(id));

  id = resolved_id(channel, htons(9));
  FAILS(EINVAL, rdma_connect(id, NULL));  // no queue pair
  FAILS(EINVAL, rdma_listen(id, 1));
  RETURNS(0, rdma_create_qp(id, NULL, &a));
  FAILS(EINVAL, rdma_create_qp(id, NULL, &a));
  FAILS(EINVAL, rdma_accept(id, NULL));
  FAILS(EINVAL, rdma_disconnect(id));
  rdma_destroy_qp(id);
  rdma_destroy_qp(id);
  RETURNS(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

static void addresses(void) {
  struct rdma_event_channel* channel = make_channel();
  struct rdma_cm_id* id = make_id(channel);
  struct sockaddr_un path = {.sun_family = AF_UNIX};
  FAILS(ANY_ERROR, rdma_bind_addr(id, (struct sockaddr*)&path));
  FAILS(ANY_ERROR, rdma_resolve_addr(id, NULL, (struct sockaddr*)&path, 100));
  struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(0xCB007107)}};  // 203.0.113.7
  FAILS(ANY_ERROR, rdma_bind_addr(id, (struct sockaddr*)&far));
  // Every accessor answers in every state.
  CHECK(rdma_get_src_port(id) == 0 && rdma_get_dst_port(id) == 0);
  CHECK(rdma_get_local_addr(id) != NULL && rdma_get_peer_addr(id) != NULL);
  struct sockaddr_in here = loopback_address(0);
  RETURNS(0, rdma_bind_addr(id, (struct sockaddr*)&here));
  const uint16_t port = rdma_get_src_port(id);
  CHECK(port != 0);
  RETURNS(0, rdma_listen(id, 1));
  CHECK(rdma_get_src_port(id) == port);
  // The port is taken.
  struct rdma_cm_id* second = make_id(channel);
  here = loopback_address(port);
  errno = 0;
  const int failed_bind = rdma_bind_addr(second, (struct sockaddr*)&here);
  if (failed_bind == 0) {
    FAILS(EADDRINUSE, rdma_listen(second, 1));
  } else {
    CHECK(errno == EADDRINUSE);
  }
  RETURNS(0, rdma_destroy_id(second));
  RETURNS(0, rdma_destroy_id(id));
  // Free again at once, many times.
  for (int i = 0; i < 20; ++i) {
    id = make_id(channel);
    RETURNS(0, rdma_bind_addr(id, (struct sockaddr*)&here));
    RETURNS(0, rdma_listen(id, 1));
    RETURNS(0, rdma_destroy_id(id));
  }
  rdma_destroy_event_channel(channel);
}

static void options(void) {
  struct rdma_event_channel* channel = make_channel();
  struct rdma_cm_id* id = make_id(channel);
  uint8_t octet = 1;
  int number = 1;
  FAILS(ANY_ERROR, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number, sizeof number + 1));
  FAILS(ANY_ERROR, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &octet, sizeof octet));
  FAILS(ANY_ERROR, rdma_set_option(id, RDMA_OPTION_ID, 4711, &number, sizeof number));
  FAILS(ANY_ERROR, rdma_set_option(id, 4711, RDMA_OPTION_ID_TOS, &octet, sizeof octet));
  RETURNS(0, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &octet, sizeof octet));
  RETURNS(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

/// Datagrams: refused, and a line on standard error says what is missing.
static void datagrams(void) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int before = dup(2);
  REQUIRE(before >= 0 && dup2(ends[1], 2) == 2);
  struct rdma_event_channel* channel = make_channel();
  struct rdma_cm_id* id = NULL;
  struct sockaddr_in here = loopback_address(0);
  errno = 0;
  int error = rdma_create_id(channel, &id, NULL, RDMA_PS_UDP);
  if (error == 0) error = rdma_bind_addr(id, (struct sockaddr*)&here);
  const int reason = errno;
  if (error == 0) error = rdma_join_multicast(id, (struct sockaddr*)&here, NULL);
  dup2(before, 2);
  close(ends[1]);
  char said[512] = "";
  CHECK(error == -1 && reason != 0);
  CHECK(read(ends[0], said, sizeof said - 1) > 0 && strstr(said, "iWARP") != NULL);
  if (id != NULL) RETURNS(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

static void nobody_there(void) {
  struct rdma_event_channel* channel = make_channel();
  // A port that was free a moment ago.
  struct rdma_cm_id* holder = make_id(channel);
  struct sockaddr_in here = loopback_address(0);
  RETURNS(0, rdma_bind_addr(holder, (struct sockaddr*)&here));
  const uint16_t port = rdma_get_src_port(holder);
  RETURNS(0, rdma_destroy_id(holder));
  struct rdma_cm_id* id = resolved_id(channel, port);
  struct ibv_qp_init_attr a = {.cap = {4, 4, 1, 1, 0}};
  a.qp_type = IBV_QPT_RC;
  RETURNS(0, rdma_create_qp(id, NULL, &a));
  RETURNS(0, rdma_connect(id, NULL));
  struct rdma_cm_event* event = NULL;
  REQUIRE(rdma_get_cm_event(channel, &event) == 0);
  CHECK(event->event == RDMA_CM_EVENT_REJECTED && event->status == -ECONNREFUSED);
  rdma_ack_cm_event(event);
  rdma_destroy_qp(id);
  RETURNS(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

static void empty_channel(void) {
  struct rdma_event_channel* channel = make_channel();
  REQUIRE(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  struct rdma_cm_event* event = NULL;
  FAILS(EAGAIN, rdma_get_cm_event(channel, &event));
  struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
  CHECK(poll(&readable, 1, 0) == 0);
  rdma_destroy_event_channel(channel);
}

static void disconnecting_twice(void) {
  struct pair p;
  make_pair(&p, NULL);
  RETURNS(0, rdma_disconnect(p.client));
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  RETURNS(0, rdma_disconnect(p.server));  // the peer was first
  RETURNS(0, rdma_disconnect(p.client));
  FAILS(EINVAL, rdma_accept(p.server, NULL));
  FAILS(EINVAL, rdma_connect(p.client, NULL));
  drop_pair(&p);
}

/// Requests that are answered by nothing, twice, or after the peer went.
static void requests(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  RETURNS(0, rdma_connect(p.client, NULL));
  FAILS(ANY_ERROR, rdma_connect(p.client, NULL));
  struct rdma_cm_id* request = expect_event(p.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  FAILS(EINVAL, rdma_accept(request, NULL));  // no queue pair
  FAILS(ANY_ERROR, rdma_connect(request, NULL));
  RETURNS(0, rdma_reject(request, "no", 2));
  FAILS(EINVAL, rdma_reject(request, "no", 2));
  FAILS(EINVAL, rdma_accept(request, NULL));
  struct rdma_cm_event* event = NULL;
  REQUIRE(rdma_get_cm_event(p.channel, &event) == 0);
  CHECK(event->event == RDMA_CM_EVENT_REJECTED && event->param.conn.private_data_len >= 2);
  CHECK(event->param.conn.private_data != NULL && memcmp(event->param.conn.private_data, "no", 2) == 0);
  rdma_ack_cm_event(event);
  RETURNS(0, rdma_destroy_id(request));
  drop_pair(&p);
}

static void unanswered_request(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  RETURNS(0, rdma_connect(p.client, NULL));
  struct rdma_cm_id* request = expect_event(p.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  RETURNS(0, rdma_destroy_id(request));
  struct rdma_cm_event* event = NULL;
  REQUIRE(rdma_get_cm_event(p.channel, &event) == 0);
  CHECK(event->event != RDMA_CM_EVENT_ESTABLISHED && event->status != 0);
  rdma_ack_cm_event(event);
  drop_pair(&p);
}

static void request_of_the_dead(void) {
  struct pair p;
  make_pair(&p, &(struct pair_options){.stop_before_connect = true});
  RETURNS(0, rdma_connect(p.client, NULL));
  p.server = expect_event(p.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_destroy_qp(p.client);
  struct ibv_qp_init_attr a = {.cap = {4, 4, 1, 1, 0}};
  a.qp_type = IBV_QPT_RC;
  RETURNS(0, rdma_create_qp(p.server, NULL, &a));
  // It fails at once or by an event, and everything can be taken down.
  if (rdma_accept(p.server, NULL) == 0) {
    struct rdma_cm_event* event = NULL;
    REQUIRE(rdma_get_cm_event(p.channel, &event) == 0);
    if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
      rdma_ack_cm_event(event);
      REQUIRE(rdma_get_cm_event(p.channel, &event) == 0);
      CHECK(event->event == RDMA_CM_EVENT_DISCONNECTED);
    } else {
      CHECK(event->status != 0);
    }
    rdma_ack_cm_event(event);
  }
  drop_pair(&p);
}

static void events_behind_a_destroyed_id(void) {
  struct rdma_event_channel* channel = make_channel();
  struct sockaddr_in to = loopback_address(htons(9));
  struct rdma_cm_id* id = make_id(channel);
  RETURNS(0, rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 1000));
  RETURNS(0, rdma_destroy_id(id));  // its event was not taken
  REQUIRE(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  struct rdma_cm_event* event = NULL;
  FAILS(EAGAIN, rdma_get_cm_event(channel, &event));
  rdma_destroy_event_channel(channel);
}

/// The accepted id moves to a channel of its own; listener and channel go.
static void migrating(void) {
  struct pair p;
  make_pair(&p, NULL);
  struct rdma_event_channel* own = make_channel();
  RETURNS(0, rdma_migrate_id(p.server, own));
  RETURNS(0, rdma_disconnect(p.client));
  expect_event(own, RDMA_CM_EVENT_DISCONNECTED);
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  drop_pair(&p);
  rdma_destroy_event_channel(own);
}

static void waiting_calls(void) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found = NULL;
  CHECK(rdma_getaddrinfo("no.such.host.invalid", "1", &hints, &found) != 0);
  struct sockaddr_in here = loopback_address(0);
  struct rdma_cm_id* holder = NULL;
  REQUIRE(rdma_create_id(NULL, &holder, NULL, RDMA_PS_TCP) == 0);
  RETURNS(0, rdma_bind_addr(holder, (struct sockaddr*)&here));
  char port[8];
  snprintf(port, sizeof port, "%u", ntohs(rdma_get_src_port(holder)));
  RETURNS(0, rdma_destroy_id(holder));
  REQUIRE(rdma_getaddrinfo("127.0.0.1", port, &hints, &found) == 0);
  struct ibv_qp_init_attr a = {.cap = {4, 4, 1, 1, 0}};
  struct rdma_cm_id* id = NULL;
  REQUIRE(rdma_create_ep(&id, found, NULL, &a) == 0);
  rdma_freeaddrinfo(found);
  FAILS(ECONNREFUSED, rdma_connect(id, NULL));
  rdma_destroy_ep(id);
  rdma_destroy_ep(NULL);
}

const struct test_case cm_cases[] = {{"cm: null handles", null_handles},
                                     {"cm: wrong order", wrong_order},
                                     {"cm: addresses", addresses},
                                     {"cm: options", options},
                                     {"cm: datagrams", datagrams},
                                     {"cm: nobody listens", nobody_there},
                                     {"cm: empty channel", empty_channel},
                                     {"cm: disconnecting twice", disconnecting_twice},
                                     {"cm: requests answered twice", requests},
                                     {"cm: request destroyed", unanswered_request},
                                     {"cm: request of one that went", request_of_the_dead},
                                     {"cm: events of a destroyed id", events_behind_a_destroyed_id},
                                     {"cm: migrating", migrating},
                                     {"cm: calls that wait", waiting_calls},
                                     {NULL, NULL}};
