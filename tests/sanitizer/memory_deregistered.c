/* The region of a receive is deregistered before its completion is polled: the message may be on its way. Needs
 * --memory. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, ALL_RIGHTS);
    CHECK(mr);
    struct ibv_sge sge = {(uintptr_t)b.memory, MESSAGE, mr->lkey};
    CHECK(!ibv_post_recv(b.qp, &(struct ibv_recv_wr){.wr_id = 1, .sg_list = &sge, .num_sge = 1},
                         &(struct ibv_recv_wr *){NULL}));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    if (wrong)
        CHECK(!ibv_dereg_mr(mr)); /* HERE */
    expect(&b, IBV_WC_SUCCESS);
    if (!wrong)
        CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
