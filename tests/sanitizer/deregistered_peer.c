/* The region of the peer is deregistered before it is written to. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, ALL_RIGHTS);
    CHECK(mr);
    uint32_t rkey = mr->rkey;
    if (wrong)
        CHECK(!ibv_dereg_mr(mr)); /* HERE */

    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    if (!wrong)
        CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
