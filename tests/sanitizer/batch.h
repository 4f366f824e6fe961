/* An end that posts batches. */
#ifndef BATCH_H
#define BATCH_H

#include "two.h"

/* A send of the batch. It is a macro, so that it has the line of the program. */
#define ADD_SEND(batches, end, number)                                                             \
    do {                                                                                           \
        (batches)->wr_id = (number);                                                               \
        (batches)->wr_flags = IBV_SEND_SIGNALED;                                                   \
        ibv_wr_send(batches);                                                                      \
        ibv_wr_set_sge(batches, (end)->mr->lkey, (uintptr_t)(end)->memory, MESSAGE);               \
    } while (0)

/* Two connected ends: the first posts batches of these operations, the second has receives. */
static inline struct ibv_qp_ex *start_with(struct end *a, struct end *b, uint64_t operations)
{
    open_both(a, b);
    CHECK(!ibv_destroy_qp(a->qp));
    struct ibv_qp_init_attr_ex init = {
        .send_cq = a->cq,
        .recv_cq = a->cq,
        .cap = {16, 16, 1, 1, 0},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a->pd,
        .send_ops_flags = operations,
    };
    CHECK((a->qp = ibv_create_qp_ex(a->context, &init)));
    connect_ends(a, b);
    for (int i = 0; i < 4; ++i)
        CHECK(!POST_RECV(b, i, MESSAGE));
    return ibv_qp_to_qp_ex(a->qp);
}

static inline struct ibv_qp_ex *start_with_batches(struct end *a, struct end *b)
{
    return start_with(a, b, IBV_QP_EX_WITH_SEND);
}

#endif
