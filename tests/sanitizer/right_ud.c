/* Datagrams: the receive has room for the header in front of the message. */
#include "datagrams.h"

int main(void)
{
    struct end a, b;
    open_both(&a, &b);
    to_datagrams(&a);
    to_datagrams(&b);
    struct ibv_ah *there = way_to(&a, &b);
    CHECK(!POST_RECV(&a, 1, HEADER + MESSAGE) && !POST_RECV(&b, 1, HEADER + MESSAGE));

    send_to(&a, there, b.qp->qp_num);
    struct ibv_wc wc = complete(&b);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == HEADER + MESSAGE);
    struct ibv_ah *back = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.memory, 1);
    CHECK(back);
    send_to(&b, back, wc.src_qp);
    expect(&a, IBV_WC_SUCCESS);

    CHECK(!ibv_destroy_ah(there) && !ibv_destroy_ah(back));
    close_both(&a, &b);
    return 0;
}
