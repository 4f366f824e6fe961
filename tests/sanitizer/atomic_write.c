/* An atomic write to an address that is not aligned. */
#include "../clients/placement.h"
#include "batch.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_qp_ex *batches = start_with(&a, &b, WITH_ATOMIC_WRITE);
    uint64_t value = 1, there = (uintptr_t)b.memory + (wrong ? 4 : 8);
    ibv_wr_start(batches);
    batches->wr_id = 1;
    batches->wr_flags = IBV_SEND_SIGNALED;
    ((struct newer *)batches)->atomic_write(batches, b.mr->rkey, there, &value);
    CHECK(!ibv_wr_complete(batches)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
