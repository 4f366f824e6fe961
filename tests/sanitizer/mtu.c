/* The ends differ in the path MTU. A message that fits into one packet passes, a longer one does not. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    struct ibv_qp_attr of_a = rtr_to(&b), of_b = rtr_to(&a);
    of_a.path_mtu = wrong ? IBV_MTU_512 : IBV_MTU_1024;
    CHECK(!ibv_modify_qp(a.qp, &of_a, RTR_MASK)); /* HERE */
    CHECK(!ibv_modify_qp(b.qp, &of_b, RTR_MASK)); /* HERE */
    to_rts(&a, 14, 7);
    to_rts(&b, 14, 7);

    CHECK(!POST_RECV(&b, 1, MESSAGE) && !POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
