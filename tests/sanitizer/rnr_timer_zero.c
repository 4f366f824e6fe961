/* A receive that is a little late costs 655 ms, since min_rnr_timer 0 stands for the longest time. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    struct ibv_qp_attr attr = rtr_to(&a);
    attr.min_rnr_timer = 0;
    CHECK(!ibv_modify_qp(b.qp, &attr, RTR_MASK));
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rts(&a, 14, 7);
    to_rts(&b, 14, 7);
    if (!wrong)
        CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    if (wrong)
        CHECK(!POST_RECV(&b, 1, MESSAGE));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
