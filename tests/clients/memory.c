/* Atomics, and progress without verbs calls: a thread that only looks at memory sees a write that
 * had to be sent again, and so needed a timer. A peer that is not there ends the retries. */
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "bench.h"

static void post(struct end *end, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->send_flags = IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(end->qp, wr, &bad));
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    to_init(&a);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rts(&a, 12, 7); /* 17 ms */

    /* The peer is not ready, so the first try is lost. */
    struct ibv_sge sge = {(uintptr_t)a.memory, 8, a.mr->lkey};
    struct ibv_send_wr write = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    write.wr.rdma.remote_addr = (uintptr_t)b.memory;
    write.wr.rdma.rkey = b.mr->rkey;
    *(uint64_t *)a.memory = 5;
    post(&a, &write);
    CHECK(*(volatile uint64_t *)b.memory == 0);
    to_init(&b);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);
    while (*(volatile uint64_t *)b.memory != 5)
        ;
    CHECK(complete(&a).status == IBV_WC_SUCCESS);

    struct ibv_send_wr add = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    add.wr.atomic.remote_addr = (uintptr_t)b.memory;
    add.wr.atomic.rkey = b.mr->rkey;
    add.wr.atomic.compare_add = 37;
    post(&a, &add);
    CHECK(complete(&a).opcode == IBV_WC_FETCH_ADD);
    CHECK(*(uint64_t *)a.memory == 5 && *(uint64_t *)b.memory == 42);
    struct ibv_send_wr swap = add;
    swap.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    swap.wr.atomic.compare_add = 42;
    swap.wr.atomic.swap = 1;
    post(&a, &swap);
    CHECK(complete(&a).opcode == IBV_WC_COMP_SWAP);
    CHECK(*(uint64_t *)a.memory == 42 && *(uint64_t *)b.memory == 1);

    /* An address of a region that is the program's choice. */
    struct ibv_mr *at = ibv_reg_mr_iova(b.pd, b.memory, LENGTH, (uintptr_t)b.memory % 4096, ALL_RIGHTS);
    CHECK(at);
    write.wr.rdma.remote_addr = (uintptr_t)b.memory % 4096 + 8;
    write.wr.rdma.rkey = at->rkey;
    post(&a, &write);
    CHECK(complete(&a).status == IBV_WC_SUCCESS && ((uint64_t *)b.memory)[1] == 42);
    CHECK(!ibv_dereg_mr(at));

    /* Memory may go while it is registered (MR-23): all but an access to it goes on. */
    enum { MUCH = 1 << 20 };
    void *much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(much != MAP_FAILED);
    struct ibv_mr *gone = ibv_reg_mr(b.pd, much, MUCH, ALL_RIGHTS);
    CHECK(gone && !munmap(much, MUCH));
    write.wr.rdma.remote_addr = (uintptr_t)b.memory;
    write.wr.rdma.rkey = b.mr->rkey;
    post(&a, &write);
    CHECK(complete(&a).status == IBV_WC_SUCCESS);
    CHECK(!ibv_dereg_mr(gone));

    /* No device has this address (AH-07). */
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
    union ibv_gid unowned = {.raw = {0xfe, 0x80, [15] = 0x77}};
    struct ibv_ah_attr way = {.grh = {.dgid = unowned, .hop_limit = 64}, .is_global = 1, .port_num = 1};
    CHECK(!ibv_create_ah(a.pd, &way) && errno == ETIMEDOUT);
    /* No queue pair has this number: retries run out, and nothing hangs. */
    to_init(&a);
    to_rtr(&a, gid_of(&b), 77);
    to_rts(&a, 8, 1);
    post(&a, &write);
    CHECK(complete(&a).status == IBV_WC_RETRY_EXC_ERR);

    close_end(&a);
    close_end(&b);
    return 0;
}
