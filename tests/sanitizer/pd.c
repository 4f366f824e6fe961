/* The region of a send is of another protection domain than the queue pair. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_pd *other = ibv_alloc_pd(a.context);
    CHECK(other);
    struct ibv_mr *mr = ibv_reg_mr(wrong ? other : a.pd, a.memory, LENGTH, 0); /* HERE */
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)a.memory, MESSAGE, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &wr, &bad)); /* HERE */
    expect(&a, wrong ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(other));
    close_both(&a, &b);
    return 0;
}
