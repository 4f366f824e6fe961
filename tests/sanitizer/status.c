/* A receive is flushed. Whoever reads more of its completion than the status reads garbage. */
#include "iterate.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_cq_ex *cq = start_with_iteration(&a, &b);
    struct ibv_poll_cq_attr attr = {0};
    CHECK(!ibv_start_poll(cq, &attr) && cq->status == IBV_WC_SUCCESS);
    CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
    ibv_end_poll(cq);

    CHECK(!POST_RECV(&b, 3, MESSAGE));
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(b.qp, &error, IBV_QP_STATE));
    CHECK(!ibv_start_poll(cq, &attr) && cq->wr_id == 3);
    if (wrong || cq->status == IBV_WC_SUCCESS)
        ibv_wc_read_byte_len(cq); /* HERE */
    ibv_end_poll(cq);

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
