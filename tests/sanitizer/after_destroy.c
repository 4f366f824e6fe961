/* Posts to a queue pair that is destroyed. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_qp *qp = a.qp;
    use_cqs(&a, a.cq, a.cq);
    connect_ends(&a, &b);

    struct ibv_sge *sge = SGE(&a, MESSAGE);
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                       *bad;
    int result = ibv_post_send(wrong ? qp : a.qp, &wr, &bad); /* HERE */
    CHECK(result == (wrong ? EINVAL : 0));
    if (!wrong)
        expect(&a, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
