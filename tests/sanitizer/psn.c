/* The one begins with another packet number than the other waits for. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    struct ibv_qp_attr expected = rtr_to(&a), first = rts();
    expected.rq_psn = 7;
    first.sq_psn = wrong ? 70 : 7;
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    CHECK(!ibv_modify_qp(b.qp, &expected, RTR_MASK)); /* HERE */
    CHECK(!ibv_modify_qp(a.qp, &first, RTS_MASK)); /* HERE */
    to_rts(&b, 14, 7);

    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
