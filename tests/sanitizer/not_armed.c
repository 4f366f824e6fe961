/* Waits for an event, and has armed no CQ. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    if (!wrong)
        CHECK(!ibv_req_notify_cq(b.cq, 0));

    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(b.channel, &cq, &context)); /* HERE */
    ibv_ack_cq_events(cq, 1);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
