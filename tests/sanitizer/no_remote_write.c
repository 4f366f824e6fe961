/* A write to a region of the peer that peers may only read. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    int rights = IBV_ACCESS_LOCAL_WRITE | (wrong ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, rights); /* HERE */
    CHECK(mr);
    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, mr->rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
