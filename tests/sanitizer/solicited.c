/* Waits for a solicited message, and the sender solicits none. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!ibv_req_notify_cq(b.cq, 1)); /* HERE */

    int flags = IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_SOLICITED);
    CHECK(!POST_SEND(&a, 2, MESSAGE, flags)); /* HERE */
    expect(&a, IBV_WC_SUCCESS);

    take_event(&b, b.cq);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
