/* Polls a CQ that is destroyed. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_cq *cq = ibv_create_cq(a.context, 16, NULL, NULL, 0);
    struct ibv_wc wc;
    CHECK(cq);
    if (!wrong)
        CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
    CHECK(!ibv_destroy_cq(cq));
    if (wrong)
        CHECK(ibv_poll_cq(cq, 1, &wc) < 0); /* HERE */
    close_both(&a, &b);
    return 0;
}
