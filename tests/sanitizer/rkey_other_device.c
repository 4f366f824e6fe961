/* The peer registers its memory at two devices, and gives the rkey of the wrong one. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    struct ibv_mr *at_a = ibv_reg_mr(a.pd, b.memory, LENGTH, ALL_RIGHTS); /* HERE */
    CHECK(at_a);
    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, wrong ? at_a->rkey : b.mr->rkey));
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    CHECK(!ibv_dereg_mr(at_a)); /* HERE */
    close_both(&a, &b);
    return 0;
}
