/* A queue pair is destroyed, or moved to RESET, while its message waits for a receive. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    for (int resets = 0; resets < 2; ++resets) {
        if (!wrong)
            CHECK(!POST_RECV(&b, 1, MESSAGE));
        CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
        if (!wrong) {
            expect(&a, IBV_WC_SUCCESS);
            expect(&b, IBV_WC_SUCCESS);
        }
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
        if (resets)
            CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
        else
            use_cqs(&a, a.cq, a.cq);
        CHECK(!ibv_modify_qp(b.qp, &reset, IBV_QP_STATE));
        connect_ends(&a, &b);
    }
    close_both(&a, &b);
    return 0;
}
