/* The peer posts its receive after the message has come, and the sender does not try for long. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);
    to_rts(&b, 14, 7);
    struct ibv_qp_attr attr = rts();
    attr.rnr_retry = 1;
    CHECK(!ibv_modify_qp(a.qp, &attr, RTS_MASK));

    if (!wrong)
        CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    expect(&a, wrong ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS);
    if (wrong)
        CHECK(!POST_RECV(&b, 1, MESSAGE));
    else
        expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
