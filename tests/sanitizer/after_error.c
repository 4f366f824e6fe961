/* The queue pair is in ERR, and its receive has come back flushed. Who sends all the same sends nothing. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&a, 1, MESSAGE));
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(a.qp, &error, IBV_QP_STATE));
    expect(&a, IBV_WC_WR_FLUSH_ERR);

    for (int i = 0; i < 3 && wrong; ++i) {
        CHECK(!POST_WRITE(&a, 2, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey)); /* HERE */
        expect(&a, IBV_WC_WR_FLUSH_ERR);
    }
    close_both(&a, &b);
    return 0;
}
