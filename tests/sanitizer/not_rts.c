/* Posts a send in RTR, where a queue pair can only receive. */
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
    if (!wrong)
        to_rts(&a, 14, 7);

    int result = POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey); /* HERE */
    CHECK(result == (wrong ? EINVAL : 0));
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
