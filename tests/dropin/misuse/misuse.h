// Internal to this program.
// Cases of misuse: each runs in a process of its own, with a time limit, so that a crash or a hang is one failure.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct test_case {
  const char* name;
  void (*run)(void);
};
/// Ends with an entry without a name.
extern const struct test_case device_cases[], memory_cases[], completion_cases[], queue_pair_cases[], posting_cases[],
    extended_cases[], cm_cases[], lifetime_cases[];

/// A failed check is told, and the case goes on; a failed REQUIRE ends it.
void failed(const char* file, int line, const char* what, const char* detail);
_Noreturn void give_up(void);
#define CHECK(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition, NULL))
#define REQUIRE(condition) ((condition) ? (void)0 : (failed(__FILE__, __LINE__, #condition, NULL), give_up()))

/// Calls that return an errno, are -1 with errno, or null with errno.
void check_returns(const char* file, int line, const char* what, int got, int wanted);
void check_errno(const char* file, int line, const char* what, bool failed_as_told, int wanted);
#define RETURNS(wanted, call) check_returns(__FILE__, __LINE__, #call, (call), (wanted))
#define FAILS(wanted, call) (errno = 0, check_errno(__FILE__, __LINE__, #call, (call) == -1, (wanted)))
#define NULL_WITH(wanted, call) (errno = 0, check_errno(__FILE__, __LINE__, #call, (call) == NULL, (wanted)))
/// For what the manual pages leave open: any error.
#define ANY_ERROR (-4711)

/// The loopback device, opened.
struct ibv_context* open_loopback(void);
/// Another device, or null where there is only one.
struct ibv_context* open_other(void);

/// What a case needs to talk about memory.
struct memory {
  struct ibv_mr* mr;
  unsigned char octets[4096];
};
struct ibv_sge whole(const struct memory* m, uint32_t length);

/// Two queue pairs of this process, connected over loopback.
struct pair {
  struct rdma_event_channel* channel;
  struct rdma_cm_id *listener, *client, *server;
  struct ibv_cq *client_cq, *server_cq;
  struct memory client_memory, server_memory;  // all rights
};
struct pair_options {
  struct ibv_qp_cap cap;  // zero: 8 requests, 2 elements, no inline data
  int cq_depth;           // zero: 32
  struct ibv_srq* server_srq;
  bool stop_before_connect;
};
void make_pair(struct pair* p, const struct pair_options* options);
void drop_pair(struct pair* p);
/// The next event, which must be of this type; acknowledged. Its id.
struct rdma_cm_id* expect_event(struct rdma_event_channel* channel, enum rdma_cm_event_type type);
/// The port that `listener` got, as an address of loopback.
struct sockaddr_in loopback_address(uint16_t port);
/// An id that is resolved towards `port` of loopback.
struct rdma_cm_id* resolved_id(struct rdma_event_channel* channel, uint16_t port);

/// Polls for one completion, some seconds at most.
struct ibv_wc next_completion(struct ibv_cq* cq);
int post_recv_one(struct ibv_qp* qp, struct ibv_sge* sge, uint64_t id);
/// One signaled request, with errno's number if it was refused.
int post_one(struct ibv_qp* qp, enum ibv_wr_opcode opcode, struct ibv_sge* sge, uint32_t rkey, uint64_t remote);
