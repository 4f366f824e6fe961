/* A write with a number takes a receive of the peer, which needs no memory of its own. */
#include "two.h"

int main(void)
{
    struct end a, b;
    start_both(&a, &b);
    struct ibv_recv_wr none = {.wr_id = 1}, *bad_recv;
    CHECK(!ibv_post_recv(b.qp, &none, &bad_recv));
    memset(a.memory, 'x', MESSAGE);
    struct ibv_send_wr wr = {.wr_id = 2,
                             .sg_list = SGE(&a, MESSAGE),
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htobe32(7),
                             .wr.rdma = {(uintptr_t)b.memory, b.mr->rkey}},
                       *bad;
    CHECK(!ibv_post_send(a.qp, &wr, &bad));
    expect(&a, IBV_WC_SUCCESS);
    struct ibv_wc wc = complete(&b);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK(be32toh(wc.imm_data) == 7 && b.memory[MESSAGE - 1] == 'x');
    close_both(&a, &b);
    return 0;
}
