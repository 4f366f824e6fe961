/* A region is deregistered while a receive still needs it. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)b.memory, MESSAGE, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(b.qp, &wr, &bad));
    if (wrong)
        CHECK(!ibv_dereg_mr(mr)); /* HERE */

    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    complete(&a);
    expect(&b, wrong ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    if (!wrong)
        CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
