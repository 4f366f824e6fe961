/* An event tells of three messages. One is polled, then the CQ is armed: no event tells of the others. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    for (int i = 0; i < 3; ++i)
        CHECK(!POST_RECV(&b, i, MESSAGE));
    CHECK(!ibv_req_notify_cq(b.cq, 0));
    for (int i = 0; i < 3; ++i) {
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
        expect(&a, IBV_WC_SUCCESS);
    }

    struct ibv_wc wc;
    take_event(&b, b.cq);
    CHECK(ibv_poll_cq(b.cq, 1, &wc) == 1);
    CHECK(!ibv_req_notify_cq(b.cq, 0)); /* HERE */
    if (!wrong)
        while (ibv_poll_cq(b.cq, 1, &wc))
            CHECK(wc.status == IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
