/* Acknowledges more events than were read. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!ibv_req_notify_cq(b.cq, 0));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(b.channel, &cq, &context));
    ibv_ack_cq_events(cq, wrong ? 2 : 1); /* HERE */
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
