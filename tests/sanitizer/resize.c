/* A CQ is made smaller than what waits in it. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    for (int i = 0; i < 3; ++i) {
        CHECK(!POST_WRITE(&a, i, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey));
        if (!wrong)
            expect(&a, IBV_WC_SUCCESS);
    }
    int result = ibv_resize_cq(a.cq, 1); /* HERE */
    CHECK(result == (wrong ? EINVAL : 0));
    for (int i = 0; i < 3 && wrong; ++i)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
