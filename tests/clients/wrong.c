/* A program that does much wrong and leaves most undone: what is said of it at its end is wrong.txt.
 *
 * verbsim exec --names left,right --seed 0 */
#include "bench.h"

static int post_write(struct end *end, uint64_t wr_id, uint64_t addr, uint32_t rkey)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, 64, end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = rkey;
    return ibv_post_send(end->qp, &wr, &bad);
}

static void again(struct end *a, struct end *b)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a->qp, &reset, IBV_QP_STATE) && !ibv_modify_qp(b->qp, &reset, IBV_QP_STATE));
    connect_ends(a, b);
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);

    /* Beyond the region of the peer, with a key that is none, with the wrong key of the two. */
    connect_ends(&a, &b);
    CHECK(!post_write(&a, 1, (uintptr_t)b.memory + LENGTH - 32, b.mr->rkey));
    CHECK(complete(&a).status == IBV_WC_REM_ACCESS_ERR);
    again(&a, &b);
    CHECK(!post_write(&a, 2, (uintptr_t)b.memory, 0x1234));
    CHECK(complete(&a).status == IBV_WC_REM_ACCESS_ERR);
    again(&a, &b);
    CHECK(!post_write(&a, 3, (uintptr_t)b.memory, b.mr->lkey));
    CHECK(complete(&a).status == IBV_WC_REM_ACCESS_ERR);

    /* Its own memory: a key of another domain; a receive that is too short. */
    again(&a, &b);
    struct ibv_pd *other = ibv_alloc_pd(a.context);
    struct ibv_mr *own = a.mr, *foreign = ibv_reg_mr(other, a.memory, LENGTH, ALL_RIGHTS);
    CHECK(other && foreign);
    a.mr = foreign;
    post_send(&a, 4, 64, 0);
    a.mr = own;
    CHECK(complete(&a).status == IBV_WC_LOC_PROT_ERR);
    again(&a, &b);
    post_recv(&b, 5, 8);
    post_send(&a, 6, 64, 0);
    CHECK(complete(&a).status == IBV_WC_REM_INV_REQ_ERR && complete(&b).status == IBV_WC_LOC_LEN_ERR);

    /* The peer is gone to RESET. */
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    again(&a, &b);
    CHECK(!ibv_modify_qp(b.qp, &reset, IBV_QP_STATE));
    CHECK(!ibv_modify_qp(a.qp, &reset, IBV_QP_STATE));
    to_init(&a);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rts(&a, 8, 1);
    post_send(&a, 7, 64, 0);
    CHECK(complete(&a).status == IBV_WC_RETRY_EXC_ERR);

    /* Nobody looks before sleeping: the receive came before the CQ was armed. */
    again(&a, &b);
    post_recv(&b, 8, 64);
    post_recv(&b, 9, 64);
    post_send(&a, 8, 64, 0);
    CHECK(complete(&a).status == IBV_WC_SUCCESS);
    CHECK(!ibv_req_notify_cq(b.cq, 0));

    /* A queue for one completion gets two; and nobody acknowledges the event that was read. */
    struct ibv_cq *small = ibv_create_cq(b.context, 1, NULL, b.channel, 0), *cq;
    struct ibv_qp_init_attr init = {
        .send_cq = small, .recv_cq = small, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    CHECK(small && (b.qp = ibv_create_qp(b.pd, &init)));
    to_init(&b);
    CHECK(!ibv_req_notify_cq(small, 0));
    post_recv(&b, 10, 64);
    post_recv(&b, 11, 64);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(b.qp, &error, IBV_QP_STATE));
    void *context;
    CHECK(!ibv_get_cq_event(b.channel, &cq, &context) && cq == small);

    /* A device is closed with what it has (DEV-03). */
    CHECK(!ibv_close_device(a.context));
    free(a.memory);
    free(b.memory);
    return 0;
}
