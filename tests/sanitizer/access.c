/* A region that peers may write to must be one that the device may write to at all. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    int rights = IBV_ACCESS_REMOTE_WRITE | (wrong ? 0 : IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, rights); /* HERE */
    CHECK(wrong ? !mr && errno == EINVAL : !!mr);
    if (mr) {
        CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, mr->rkey));
        expect(&a, IBV_WC_SUCCESS);
        CHECK(!ibv_dereg_mr(mr));
    }
    close_both(&a, &b);
    return 0;
}
