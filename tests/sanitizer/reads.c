/* The one may have reads under way, of which the other takes none. That is not a mistake until it reads. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    to_init(&a);
    to_init(&b);
    struct ibv_qp_attr takes_none = rtr_to(&a);
    takes_none.max_dest_rd_atomic = 0;
    CHECK(!ibv_modify_qp(b.qp, &takes_none, RTR_MASK));
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    struct ibv_qp_attr may_read = rts();
    CHECK(!ibv_modify_qp(a.qp, &may_read, RTS_MASK)); /* HERE */
    to_rts(&b, 14, 7);

    CHECK(!POST_WRITE(&a, 1, MESSAGE, IBV_SEND_SIGNALED, b.memory, b.mr->rkey));
    expect(&a, IBV_WC_SUCCESS);
    if (wrong) {
        struct ibv_send_wr read = {.wr_id = 2,
                                   .sg_list = SGE(&a, MESSAGE),
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_READ,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                           *bad;
        CHECK(!ibv_post_send(a.qp, &read, &bad)); /* HERE */
        expect(&a, IBV_WC_REM_INV_REQ_ERR);
    }
    close_both(&a, &b);
    return 0;
}
