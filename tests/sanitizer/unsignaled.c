/* Polls for the completion of a write that was not signaled: it makes none. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_WRITE(&a, 1, MESSAGE, wrong ? 0 : IBV_SEND_SIGNALED, b.memory, b.mr->rkey));
    struct ibv_wc wc;
    while (ibv_poll_cq(a.cq, 1, &wc) == 0) /* HERE */
        ;
    CHECK(wc.status == IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
