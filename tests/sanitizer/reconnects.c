/* The same, but it goes on over a new connection: that may be right. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    if (wrong) {
        use_cqs(&b, b.cq, b.cq);
        CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
        expect(&a, IBV_WC_RETRY_EXC_ERR);
        use_cqs(&a, a.cq, a.cq);
        connect_ends(&a, &b);
    }
    CHECK(!POST_RECV(&b, 2, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
