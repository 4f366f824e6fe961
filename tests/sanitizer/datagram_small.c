/* The receive has room for the message, and not for the header in front of it. */
#include "datagrams.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_datagrams(&a);
    to_datagrams(&b);
    struct ibv_ah *there = way_to(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE + (wrong ? 0 : HEADER))); /* HERE */

    send_to(&a, there, b.qp->qp_num);
    if (wrong)
        is_empty(b.cq);
    else
        expect(&b, IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_ah(there));
    close_both(&a, &b);
    return 0;
}
