/* A message comes between the last poll and the arming: who waits without another poll waits for ever. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    is_empty(b.cq);

    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    struct ibv_wc wc;
    CHECK(!ibv_req_notify_cq(b.cq, 0)); /* HERE */
    if (wrong || ibv_poll_cq(b.cq, 1, &wc) == 0)
        take_event(&b, b.cq);
    close_both(&a, &b);
    return 0;
}
