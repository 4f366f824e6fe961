/* Device memory: copies there and back, and regions of it, whose addresses are offsets. */
#include <unistd.h>

#include "bench.h"

static struct ibv_dm *alloc(struct ibv_context *context, size_t length)
{
    struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = 3};
    return ibv_alloc_dm(context, &attr);
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    struct ibv_device_attr_ex device;
    CHECK(!ibv_query_device_ex(b.context, NULL, &device) && device.max_dm_size);

    /* There is so much of it, and no more. */
    CHECK(!alloc(b.context, device.max_dm_size + 1) && errno == EINVAL);
    CHECK(!alloc(b.context, 0) && errno == EINVAL);
    struct ibv_alloc_dm_attr newer = {.length = 64, .comp_mask = 1};
    CHECK(!ibv_alloc_dm(b.context, &newer) && errno == EINVAL);
    struct ibv_dm *all = alloc(b.context, device.max_dm_size), *other = alloc(a.context, 64);
    CHECK(all && other && !alloc(b.context, 4) && errno == ENOMEM);
    CHECK(!ibv_free_dm(all) && ibv_free_dm(all) == EINVAL);
    struct ibv_dm *dm = alloc(b.context, 256);
    CHECK(dm && dm != all && dm->context == b.context);

    /* Copies of whole words, within it. */
    char bytes[16] = "0123456789abcde";
    CHECK(!ibv_memcpy_to_dm(dm, 32, bytes, 16));
    CHECK(ibv_memcpy_to_dm(dm, 244, bytes, 16) == EFAULT);
    CHECK(ibv_memcpy_to_dm(dm, UINT64_MAX - 7, bytes, 16) == EFAULT);
    CHECK(ibv_memcpy_to_dm(dm, 2, bytes, 16) == EINVAL);
    CHECK(ibv_memcpy_to_dm(dm, 0, bytes, 15) == EINVAL);
    CHECK(all->memcpy_to_dm(all, 0, bytes, 16) == EINVAL);

    /* A region of a part. */
    const int rights = ALL_RIGHTS | IBV_ACCESS_ZERO_BASED;
    CHECK(!ibv_reg_dm_mr(b.pd, dm, 16, 64, ALL_RIGHTS) && errno == EINVAL);
    CHECK(!ibv_reg_dm_mr(b.pd, dm, 200, 64, rights) && errno == EINVAL);
    CHECK(!ibv_reg_dm_mr(b.pd, all, 0, 64, rights) && errno == EINVAL);
    CHECK(!ibv_reg_dm_mr(a.pd, dm, 0, 64, rights) && errno == EINVAL);
    struct ibv_mr *mr = ibv_reg_dm_mr(b.pd, dm, 16, 64, rights);
    CHECK(mr && !mr->addr && mr->length == 64 && ibv_free_dm(dm) == EBUSY);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD);
    CHECK(errno == EINVAL);

    connect_ends(&a, &b);
    struct ibv_sge sge = {(uintptr_t)a.memory, 16, a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = 16;
    wr.wr.rdma.rkey = mr->rkey;
    CHECK(!ibv_post_send(a.qp, &wr, &bad) && complete(&a).status == IBV_WC_SUCCESS);
    CHECK(!memcmp(a.memory, bytes, sizeof bytes));
    memcpy(a.memory, "written", 8);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = 0;
    sge.length = 8;
    CHECK(!ibv_post_send(a.qp, &wr, &bad) && complete(&a).status == IBV_WC_SUCCESS);
    CHECK(!ibv_memcpy_from_dm(bytes, dm, 16, 8) && !strcmp(bytes, "written"));
    /* It is received into, too. */
    struct ibv_sge into = {48, 8, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &into, .num_sge = 1}, *bad_recv;
    CHECK(!ibv_post_recv(b.qp, &recv, &bad_recv));
    post_send(&a, 1, 8, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && complete(&b).status == IBV_WC_SUCCESS);

    /* Imported, it is the same. */
    struct ibv_context *context = ibv_import_device(dup(b.context->cmd_fd));
    CHECK(context && !ibv_import_dm(context, dm->handle + 100) && errno == EINVAL);
    CHECK(!ibv_import_dm(a.context, dm->handle) && errno == EINVAL);
    struct ibv_dm *same = ibv_import_dm(context, dm->handle);
    memset(bytes, 0, sizeof bytes);
    CHECK(same && same != dm && same->handle == dm->handle);
    CHECK(!ibv_memcpy_from_dm(bytes, same, 64, 8) && !strcmp(bytes, "written"));
    CHECK(ibv_free_dm(same) == EBUSY);
    ibv_unimport_dm(same);
    CHECK(ibv_memcpy_from_dm(bytes, same, 64, 8) == EINVAL && !ibv_close_device(context));
    dm->handle ^= 0x100;
    CHECK(ibv_memcpy_from_dm(bytes, dm, 64, 8) == ENOENT);
    dm->handle ^= 0x100;

    /* What is left goes with the context. */
    CHECK(!ibv_dereg_mr(mr) && !ibv_free_dm(dm) && (dm = alloc(b.context, device.max_dm_size)));
    close_end(&b);
    CHECK(ibv_memcpy_from_dm(bytes, dm, 0, 8) == EINVAL);
    open_end(&b, 1, 0);
    CHECK((dm = alloc(b.context, device.max_dm_size)) && !ibv_free_dm(dm) && !ibv_free_dm(other));
    close_end(&a);
    close_end(&b);
    return 0;
}
