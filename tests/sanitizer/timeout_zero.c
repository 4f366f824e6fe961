/* The timeout of a queue pair is 0, which stands for no limit: a send to a destroyed one never fails. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);
    to_rts(&a, wrong ? 0 : 10, 1);
    to_rts(&b, 10, 1);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    if (wrong)
        use_cqs(&b, b.cq, b.cq);
    CHECK(!POST_SEND(&a, 1, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
