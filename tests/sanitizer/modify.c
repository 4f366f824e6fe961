/* To RTR without the number of the first packet, which the call must set. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);

    struct ibv_qp_attr attr = rtr_to(&b);
    int mask = wrong ? RTR_MASK & ~IBV_QP_RQ_PSN : RTR_MASK;
    int result = ibv_modify_qp(a.qp, &attr, mask); /* HERE */
    CHECK(result == (wrong ? EINVAL : 0));
    if (!wrong) {
        to_rts(&a, 14, 7);
        to_rts(&b, 14, 7);
        CHECK(!POST_RECV(&b, 1, MESSAGE) && !POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
        expect(&a, IBV_WC_SUCCESS);
        expect(&b, IBV_WC_SUCCESS);
    }
    close_both(&a, &b);
    return 0;
}
