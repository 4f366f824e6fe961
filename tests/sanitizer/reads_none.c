/* A read on a queue pair that may have none under way: max_rd_atomic was left 0. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rtr(&b, gid_of(&a), a.qp->qp_num);
    struct ibv_qp_attr attr = rts();
    attr.max_rd_atomic = !wrong;
    CHECK(!ibv_modify_qp(a.qp, &attr, RTS_MASK));
    to_rts(&b, 14, 7);
    struct ibv_send_wr read = {.wr_id = 2,
                               .sg_list = SGE(&a, MESSAGE),
                               .num_sge = 1,
                               .opcode = IBV_WR_RDMA_READ,
                               .send_flags = IBV_SEND_SIGNALED,
                               .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &read, &bad)); /* HERE */
    expect(&a, wrong ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
