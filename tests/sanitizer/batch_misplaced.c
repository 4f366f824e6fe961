/* Builds where no batch is begun, begins one within another, and posts otherwise within one. */
#include "batch.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_qp_ex *batches = start_with_batches(&a, &b);

    if (!wrong)
        ibv_wr_start(batches);
    ADD_SEND(batches, &a, 1);                                /* HERE */
    CHECK(ibv_wr_complete(batches) == (wrong ? EINVAL : 0)); /* HERE */

    ibv_wr_start(batches); /* HERE */
    if (wrong)
        ibv_wr_start(batches); /* HERE */
    ADD_SEND(batches, &a, 2);
    CHECK(ibv_wr_complete(batches) == (wrong ? EINVAL : 0));

    ibv_wr_start(batches); /* HERE */
    if (wrong)
        CHECK(!POST_SEND(&a, 3, MESSAGE, IBV_SEND_SIGNALED)); /* HERE */
    else
        ADD_SEND(batches, &a, 3);
    CHECK(!ibv_wr_complete(batches));

    for (int i = wrong ? 3 : 1; i <= 3; ++i) {
        expect(&a, IBV_WC_SUCCESS);
        expect(&b, IBV_WC_SUCCESS);
    }
    close_both(&a, &b);
    return 0;
}
