/* Waits for the completion of a send whose batch is not completed. */
#include "batch.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_qp_ex *batches = start_with_batches(&a, &b);
    CHECK(!ibv_req_notify_cq(a.cq, 0));
    ibv_wr_start(batches); /* HERE */
    ADD_SEND(batches, &a, 1);
    if (!wrong)
        CHECK(!ibv_wr_complete(batches));
    take_event(&a, a.cq); /* HERE */
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
