/* Does not end an iteration: the CQ stays locked, and the next iteration over it cannot begin. */
#include "iterate.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_cq_ex *cq = start_with_iteration(&a, &b);

    struct ibv_poll_cq_attr attr = {0};
    CHECK(!ibv_start_poll(cq, &attr) && cq->wr_id == 1); /* HERE */
    CHECK(ibv_next_poll(cq) == ENOENT);
    if (!wrong)
        ibv_end_poll(cq);
    CHECK(ibv_start_poll(cq, &attr) == (wrong ? EINVAL : ENOENT)); /* HERE */
    if (wrong)
        ibv_end_poll(cq);

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
