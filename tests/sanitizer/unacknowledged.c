/* An event of a CQ is not acknowledged: the destroy of the CQ waits for that for ever. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq *armed = ibv_create_cq(b.context, 64, NULL, b.channel, 0), *cq;
    CHECK(armed);
    use_cqs(&b, b.cq, armed);
    connect_ends(&a, &b);

    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!ibv_req_notify_cq(armed, 0));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    void *context;
    CHECK(!ibv_get_cq_event(b.channel, &cq, &context)); /* HERE */
    if (!wrong)
        ibv_ack_cq_events(cq, 1);

    struct ibv_wc wc;
    CHECK(ibv_poll_cq(armed, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(armed)); /* HERE */
    close_both(&a, &b);
    return 0;
}
