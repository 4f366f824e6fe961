/* A region is deregistered before the completion of a write from it: the device may not have read it yet. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(a.pd, a.memory, LENGTH, 0);
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)a.memory, MESSAGE, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &wr, &bad));
    if (wrong)
        CHECK(!ibv_dereg_mr(mr)); /* HERE */

    /* With an error, if the device has been slow. */
    complete(&a);
    if (!wrong)
        CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
