/* Reads a field of a completion after the iteration over it has ended. */
#include "iterate.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_cq_ex *cq = start_with_iteration(&a, &b);
    struct ibv_poll_cq_attr attr = {0};
    CHECK(!ibv_start_poll(cq, &attr) && cq->wr_id == 1);
    CHECK(ibv_wc_read_byte_len(cq) == MESSAGE);
    ibv_end_poll(cq);
    if (wrong)
        CHECK(ibv_wc_read_byte_len(cq) == 0); /* HERE */

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
