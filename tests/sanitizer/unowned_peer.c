/* Connects with an address that no device has, on a device that does not look. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    union ibv_gid there = gid_of(&b);
    if (wrong)
        there.raw[15] = 0xfe;
    to_rtr(&a, there, b.qp->qp_num);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);
    to_rts(&a, 10, 1);
    to_rts(&b, 10, 1);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    expect(&a, wrong ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
    if (!wrong)
        expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
