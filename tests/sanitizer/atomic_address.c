/* An atomic on a word that is not aligned. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    struct ibv_send_wr add = {.wr_id = 1,
                              .sg_list = SGE(&a, 8),
                              .num_sge = 1,
                              .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                              .send_flags = IBV_SEND_SIGNALED,
                              .wr.atomic = {.remote_addr = (uintptr_t)b.memory + (wrong ? 4 : 8),
                                            .compare_add = 1,
                                            .rkey = b.mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &add, &bad)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
