/* Neither completes nor aborts a batch: its sends are never posted. */
#include "batch.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_qp_ex *batches = start_with_batches(&a, &b);
    ibv_wr_start(batches); /* HERE */
    ADD_SEND(batches, &a, 1);
    ADD_SEND(batches, &a, 2);
    if (!wrong) {
        CHECK(!ibv_wr_complete(batches));
        for (int i = 0; i < 2; ++i) {
            expect(&a, IBV_WC_SUCCESS);
            expect(&b, IBV_WC_SUCCESS);
        }
    }
    close_both(&a, &b);
    return 0;
}
