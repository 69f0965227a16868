// Devices and ports.
#include "misuse.h"

#include <stdlib.h>

static void null_handles(void) {
  NULL_WITH(ANY_ERROR, ibv_open_device(NULL));
  FAILS(ANY_ERROR, ibv_close_device(NULL));
  NULL_WITH(ANY_ERROR, ibv_alloc_pd(NULL));
  NULL_WITH(ANY_ERROR, ibv_create_comp_channel(NULL));
  struct ibv_async_event event;
  FAILS(ANY_ERROR, ibv_get_async_event(NULL, &event));
  ibv_free_device_list(NULL);
}

static void attributes(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_device_attr attr;
  RETURNS(ANY_ERROR, ibv_query_device(context, NULL));
  RETURNS(0, ibv_query_device(context, &attr));
  CHECK(attr.max_qp_wr >= 16384 && attr.max_sge >= 16 && attr.max_cqe > 0 && attr.max_qp > 0);
  struct ibv_query_device_ex_input input = {.comp_mask = 1};
  struct ibv_device_attr_ex ex;
  RETURNS(EINVAL, ibv_query_device_ex(context, &input, &ex));
  RETURNS(0, ibv_close_device(context));
}

static void ports(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_port_attr port;
  RETURNS(EINVAL, ibv_query_port(context, 0, &port));
  RETURNS(EINVAL, ibv_query_port(context, 2, &port));
  RETURNS(0, ibv_query_port(context, 1, &port));
  union ibv_gid gid;
  FAILS(ANY_ERROR, ibv_query_gid(context, 1, port.gid_tbl_len, &gid));
  FAILS(ANY_ERROR, ibv_query_gid(context, 1, -1, &gid));
  FAILS(ANY_ERROR, ibv_query_gid(context, 2, 0, &gid));
  struct ibv_gid_entry entry;
  RETURNS(ENODATA, ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len, &entry, 0));
  RETURNS(EINVAL, ibv_query_gid_ex(context, 1, 0, &entry, 1));
  CHECK(ibv_query_gid_table(context, &entry, 0, 0) < 0);
  __be16 key;
  FAILS(ANY_ERROR, ibv_query_pkey(context, 1, port.pkey_tbl_len, &key));
  FAILS(ANY_ERROR, ibv_get_pkey_index(context, 1, 0x1234));
  RETURNS(0, ibv_close_device(context));
}

/// What InfiniBand and RoCE alone have.
static void not_of_iwarp(void) {
  struct ibv_context* context = open_loopback();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_ah_attr to = {.port_num = 1};
  NULL_WITH(EOPNOTSUPP, ibv_create_ah(pd, &to));
  struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
  NULL_WITH(EOPNOTSUPP, ibv_open_xrcd(context, &domain));
  struct ibv_alloc_dm_attr device_memory = {.length = 64};
  NULL_WITH(EOPNOTSUPP, ibv_alloc_dm(context, &device_memory));
  NULL_WITH(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 3, IBV_ACCESS_LOCAL_WRITE));
  NULL_WITH(EOPNOTSUPP, ibv_import_device(3));
  RETURNS(0, ibv_dealloc_pd(pd));
  RETURNS(0, ibv_close_device(context));
}

const struct test_case device_cases[] = {{"device: null handles", null_handles},
                                         {"device: attributes", attributes},
                                         {"device: ports, GIDs and keys that are not", ports},
                                         {"device: what InfiniBand alone has", not_of_iwarp},
                                         {NULL, NULL}};
