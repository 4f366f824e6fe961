/* Mistakes are errors, and never reach the engine: what is destroyed, foreign, corrupt, or no object
 * at all. */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);

    /* In use, then destroyed, then destroyed again. */
    CHECK(ibv_dealloc_pd(a.pd) == EBUSY);
    CHECK(ibv_destroy_cq(a.cq) == EBUSY);
    CHECK(ibv_destroy_comp_channel(a.channel) == EBUSY);
    struct ibv_pd *pd = ibv_alloc_pd(a.context);
    CHECK(pd && !ibv_dealloc_pd(pd) && ibv_dealloc_pd(pd) == EINVAL);
    CHECK(!ibv_reg_mr(pd, a.memory, 8, 0) && errno == EINVAL);
    struct ibv_cq *gone = ibv_create_cq(a.context, 4, NULL, NULL, 0);
    struct ibv_wc wc;
    CHECK(gone && !ibv_destroy_cq(gone) && ibv_poll_cq(gone, 1, &wc) < 0);
    CHECK(ibv_req_notify_cq(gone, 0) == EINVAL);
    struct ibv_cq *next = ibv_create_cq(a.context, 4, NULL, NULL, 0);
    CHECK(next && next != gone && !ibv_destroy_cq(next));

    /* Of another context, or of another kind, or none. */
    CHECK(!ibv_create_cq(a.context, 4, NULL, b.channel, 0) && errno == EINVAL);
    struct ibv_qp_init_attr init = {
        .send_cq = b.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    CHECK(!ibv_create_qp(a.pd, &init) && errno == EINVAL);
    CHECK(ibv_dereg_mr((void *)a.pd) == EINVAL);
    CHECK(ibv_destroy_qp((void *)((char *)a.qp + 8)) == EINVAL);
    CHECK(ibv_destroy_ah((void *)8) == EINVAL);
    struct ibv_context copy = *a.context;
    struct ibv_pd forged = {.context = &copy, .handle = a.pd->handle};
    CHECK(ibv_dealloc_pd(&forged) == EINVAL);

    /* A number that is not the object's. */
    a.qp->handle ^= 0x40000000;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == ENOENT);
    a.qp->handle ^= 0x40000000;
    uint32_t own = a.mr->handle;
    a.mr->handle = own + 1;
    CHECK(ibv_dereg_mr(a.mr) == ENOENT);
    a.mr->handle = own;

    /* A context that is not the object's: the kernel does not find the number there. */
    struct ibv_context *others[] = {b.context, NULL};
    for (int i = 0; i < 2; i++) {
        pd = ibv_alloc_pd(a.context);
        CHECK(pd);
        pd->context = others[i];
        CHECK(ibv_dealloc_pd(pd) == ENOENT);
        struct ibv_srq_init_attr shared = {.attr = {.max_wr = 1, .max_sge = 1}};
        if (pd->context) /* The headers themselves look into it. */
            CHECK(!ibv_create_srq(pd, &shared) && errno == ENOENT);
        pd->context = a.context;
        CHECK(!ibv_dealloc_pd(pd));
        a.mr->context = a.cq->context = a.qp->context = others[i];
        CHECK(ibv_dereg_mr(a.mr) == ENOENT && ibv_destroy_cq(a.cq) == ENOENT);
        CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == ENOENT);
        CHECK(ibv_destroy_qp(a.qp) == ENOENT);
        a.mr->context = a.cq->context = a.qp->context = a.context;
    }

    CHECK(ibv_query_gid_ex(a.context, 1, 0, NULL, 0));
    CHECK(!ibv_reg_dmabuf_mr(a.pd, 0, 4096, 0, -1, 0) && errno == EBADF);
    struct ibv_ah_attr back;
    CHECK(ibv_init_ah_from_wc(a.context, 1, NULL, NULL, &back));

    /* Memory that is not there, or cannot be written. */
    char *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(!ibv_reg_mr(a.pd, read_only, 4096, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(a.pd, read_only, 4096, 0);
    CHECK(mr && !ibv_dereg_mr(mr));
    /* Not unmapped: something else might come there. */
    CHECK(!mprotect(read_only, 4096, PROT_NONE));
    CHECK(!ibv_reg_mr(a.pd, read_only, 4096, 0) && errno == EFAULT);
    CHECK(!munmap(read_only, 4096));

    /* A list says which of its requests was the first that was not posted. */
    struct ibv_sge sge = {(uintptr_t)a.memory, 8, a.mr->lkey};
    struct ibv_send_wr wrs[3] = {
        {.next = &wrs[1], .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
        {.next = &wrs[2], .sg_list = &sge, .num_sge = -1, .opcode = IBV_WR_SEND},
        {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}};
    struct ibv_send_wr *bad = NULL;
    CHECK(ibv_post_send(a.qp, wrs, &bad) == EINVAL && bad == &wrs[1]);
    wrs[1].num_sge = 1;
    wrs[1].opcode = 99;
    CHECK(ibv_post_send(a.qp, wrs, &bad) == EINVAL && bad == &wrs[1]);
    wrs[0].num_sge = 1000000;
    CHECK(ibv_post_send(a.qp, wrs, &bad) == EINVAL && bad == &wrs[0]);
    struct ibv_ece ece = {.vendor_id = 1};
    CHECK(ibv_set_ece(a.qp, &ece) == EINVAL && ibv_set_ece(a.qp, NULL) == EINVAL);
    CHECK(ibv_query_ece((void *)a.pd, &ece) == EINVAL && ibv_query_ece(a.qp, NULL) == EINVAL);
    ece.vendor_id = 0;
    CHECK(ibv_set_ece(a.qp, &ece) == EOPNOTSUPP);

    /* What is not there says so. */
    struct ibv_counters_init_attr counters = {0};
    CHECK(!ibv_create_counters(a.context, &counters) && errno == EOPNOTSUPP);
    struct ibv_sge range = {(uintptr_t)a.memory, 64, a.mr->lkey};
    CHECK(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &range, 1) == ENOENT);
    CHECK(ibv_query_qp_data_in_order((void *)a.pd, IBV_WR_RDMA_WRITE, 0) == 0 && errno == EINVAL);
    CHECK(!ibv_fork_init() && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);

    /* A child that uses no verbs lives, and takes nothing with it. */
    pid_t child = fork();
    if (!child) {
        execlp("true", "true", NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    post_recv(&b, 1, 8);
    post_send(&a, 1, 8, 0);
    CHECK(complete(&b).status == IBV_WC_SUCCESS);

    close_end(&a);
    close_end(&b);
    CHECK(ibv_close_device(a.context) == EINVAL);
    return 0;
}
