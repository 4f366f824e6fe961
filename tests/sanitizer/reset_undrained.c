/* Connects a queue pair again without polling its old completions, and takes one for that of its new send. */
#include "two.h"

static void reset(struct end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&b, IBV_WC_SUCCESS);

    reset(&a);
    reset(&b);
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    connect_ends(&a, &b);
    CHECK(!POST_RECV(&b, 3, MESSAGE));
    CHECK(!POST_SEND(&a, 4, MESSAGE, IBV_SEND_SIGNALED));
    struct ibv_wc wc;
    while (!ibv_poll_cq(a.cq, 1, &wc)) /* HERE */
        ;
    CHECK(wc.status == IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    if (wrong)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
