/* Datagrams: the receive has room for the header in front of the message. */
#include "two.h"

enum { QKEY = 0x11111111, HEADER = sizeof(struct ibv_grh) };

static void to_datagrams(struct end *end)
{
    CHECK(!ibv_destroy_qp(end->qp));
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void send_to(struct end *end, struct ibv_ah *ah, uint32_t qp_num)
{
    struct ibv_send_wr wr = {.sg_list = SGE(end, MESSAGE),
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {ah, qp_num, QKEY}},
                       *bad;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
    expect(end, IBV_WC_SUCCESS);
}

int main(void)
{
    struct end a, b;
    open_both(&a, &b);
    to_datagrams(&a);
    to_datagrams(&b);
    struct ibv_ah_attr to_b = {
        .grh = {.dgid = gid_of(&b), .hop_limit = 64}, .is_global = 1, .port_num = 1};
    struct ibv_ah *there = ibv_create_ah(a.pd, &to_b);
    CHECK(there);
    CHECK(!POST_RECV(&a, 1, HEADER + MESSAGE) && !POST_RECV(&b, 1, HEADER + MESSAGE));

    send_to(&a, there, b.qp->qp_num);
    struct ibv_wc wc = complete(&b);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == HEADER + MESSAGE);
    struct ibv_ah *back = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.memory, 1);
    CHECK(back);
    send_to(&b, back, wc.src_qp);
    expect(&a, IBV_WC_SUCCESS);

    CHECK(!ibv_destroy_ah(there) && !ibv_destroy_ah(back));
    close_both(&a, &b);
    return 0;
}
