/* Two CQs share a channel. The event is of the one, and the other is polled. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq *receives = ibv_create_cq(b.context, 64, NULL, b.channel, 0), *cq;
    CHECK(receives);
    use_cqs(&b, b.cq, receives);
    connect_ends(&a, &b);
    CHECK(!ibv_req_notify_cq(b.cq, 0) && !ibv_req_notify_cq(receives, 0));

    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    void *context;
    struct ibv_wc wc;
    CHECK(!ibv_get_cq_event(b.channel, &cq, &context) && cq == receives); /* HERE */
    ibv_ack_cq_events(cq, 1);
    int count = ibv_poll_cq(wrong ? b.cq : cq, 1, &wc); /* HERE */
    CHECK(count == !wrong);
    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(receives));
    close_both(&a, &b);
    return 0;
}
