/* A datagram arrives before the receive is posted, and is lost. */
#include "datagrams.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_both(&a, &b);
    to_datagrams(&a);
    to_datagrams(&b);
    struct ibv_ah *way = way_to(&a, &b);
    if (!wrong)
        CHECK(!POST_RECV(&b, 1, MESSAGE + HEADER));
    send_to(&a, way, b.qp->qp_num); /* HERE */
    if (!wrong)
        expect(&b, IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_ah(way));
    close_both(&a, &b);
    return 0;
}
