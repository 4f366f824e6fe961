/* Arms a CQ that has no channel: the call succeeds, and no event can come. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq *cq = ibv_create_cq(b.context, 64, NULL, wrong ? NULL : b.channel, 0);
    CHECK(cq);
    use_cqs(&b, b.cq, cq);
    connect_ends(&a, &b);

    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!ibv_req_notify_cq(cq, 0)); /* HERE */
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    if (!wrong)
        take_event(&b, cq);
    struct ibv_wc wc;
    CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(cq));
    close_both(&a, &b);
    return 0;
}
