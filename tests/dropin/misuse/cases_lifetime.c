// Ends: of processes, children, threads and descriptors, while there are connections.
#include "misuse.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pair p;

static void ping(void) {
  struct ibv_sge into = whole(&p.server_memory, 64), from = whole(&p.client_memory, 64);
  REQUIRE(post_recv_one(p.server->qp, &into, 5) == 0);
  REQUIRE(post_one(p.client->qp, IBV_WR_SEND, &from, 0, 0) == 0);
  CHECK(next_completion(p.client_cq).status == IBV_WC_SUCCESS);
  CHECK(next_completion(p.server_cq).status == IBV_WC_SUCCESS);
}

/// Leaves all of it open.
static void exit_while_connected(void) {
  make_pair(&p, NULL);
  ping();
}

static void on_signal(int number) {
  (void)number;
  exit(0);
}
static void exit_in_handler(void) {
  make_pair(&p, NULL);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
}

static int status_of_child(pid_t child) {
  int status = -1;
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

static void child_that_exits(void) {
  RETURNS(0, ibv_fork_init());
  make_pair(&p, NULL);
  ping();
  pid_t child = fork();
  if (child == 0) exit(0);
  CHECK(status_of_child(child) == 0);
  ping();
  CHECK(system("true") == 0);
  ping();
  drop_pair(&p);
}

/// A child may start afresh, with objects of its own.
static void child_with_its_own(void) {
  make_pair(&p, NULL);
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    make_pair(&p, NULL);
    ping();
    drop_pair(&p);
    exit(0);
  }
  CHECK(status_of_child(child) == 0);
  ping();
  drop_pair(&p);
}

/// What a child does to what it inherited is no harm to its parent.
static void child_that_closes_all(void) {
  make_pair(&p, NULL);
  ping();
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    for (int fd = 3; fd < 256; ++fd) close(fd);
    exit(0);
  }
  CHECK(status_of_child(child) == 0);
  ping();
  drop_pair(&p);
}

static void destroyed_in_any_order(void) {
  make_pair(&p, NULL);
  struct ibv_sge sge = whole(&p.client_memory, 64);
  for (int i = 0; i < 4; ++i) REQUIRE(post_one(p.client->qp, IBV_WR_SEND, &sge, 0, 0) == 0);
  // The id goes before its queue pair.
  struct ibv_qp* qp = p.client->qp;
  p.client->qp = NULL;
  RETURNS(0, rdma_destroy_id(p.client));
  RETURNS(EBUSY, ibv_destroy_cq(p.client_cq));
  RETURNS(0, ibv_destroy_qp(qp));
  RETURNS(0, ibv_destroy_cq(p.client_cq));
  RETURNS(0, ibv_dereg_mr(p.client_memory.mr));
  p.client = NULL;
  expect_event(p.channel, RDMA_CM_EVENT_DISCONNECTED);
  drop_pair(&p);
}

static int open_descriptors(void) {
  int open = 0;
  for (int fd = 0; fd < 1024; ++fd) open += dup2(fd, fd) == fd;
  return open;
}

static void no_descriptor_is_lost(void) {
  make_pair(&p, NULL);
  drop_pair(&p);
  const int before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    make_pair(&p, NULL);
    ping();
    drop_pair(&p);
  }
  // What was closed last may still be on its way.
  struct pollfd nothing = {.fd = -1};
  for (int i = 0; i < 300 && open_descriptors() > before; ++i) poll(&nothing, 1, 10);
  CHECK(open_descriptors() <= before);
}

const struct test_case lifetime_cases[] = {{"lifetime: exit while connected", exit_while_connected},
                                           {"lifetime: exit in a signal handler", exit_in_handler},
                                           {"lifetime: a child that exits", child_that_exits},
                                           {"lifetime: a child with its own objects", child_with_its_own},
                                           {"lifetime: a child that closes everything", child_that_closes_all},
                                           {"lifetime: destroyed in another order", destroyed_in_any_order},
                                           {"lifetime: no descriptor is lost", no_descriptor_is_lost},
                                           {NULL, NULL}};
