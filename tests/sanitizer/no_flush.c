/* A flush of a region of the peer that was registered without the right. */
#include "../clients/placement.h"
#include "batch.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_qp_ex *batches = start_with(&a, &b, WITH_FLUSH);
    struct ibv_qp_attr attr = {.qp_access_flags = ALL_RIGHTS | FLUSH_GLOBAL};
    CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS));
    int rights = ALL_RIGHTS | (wrong ? 0 : FLUSH_GLOBAL);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, rights); /* HERE */
    CHECK(mr);
    ibv_wr_start(batches);
    batches->wr_id = 1;
    batches->wr_flags = IBV_SEND_SIGNALED;
    ((struct newer *)batches)->flush(batches, mr->rkey, (uintptr_t)b.memory, MESSAGE, GLOBAL, RANGE);
    CHECK(!ibv_wr_complete(batches)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    CHECK(!ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
