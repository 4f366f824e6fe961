/* Ends that send datagrams. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include "two.h"

enum { QKEY = 0x11111111, HEADER = sizeof(struct ibv_grh) };

static inline void to_datagrams(struct end *end)
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

static inline void send_to(struct end *end, struct ibv_ah *ah, uint32_t qp_num)
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

/* The way to an end. */
static inline struct ibv_ah *way_to(struct end *from, struct end *to)
{
    struct ibv_ah_attr attr = {
        .grh = {.dgid = gid_of(to), .hop_limit = 64}, .is_global = 1, .port_num = 1};
    struct ibv_ah *way = ibv_create_ah(from->pd, &attr);
    CHECK(way);
    return way;
}

#endif
