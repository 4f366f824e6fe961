/* What the clients share: checks, and a pair of connected queue pairs on the first two devices. */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the place and errno unless the condition holds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: errno %d\n", __FILE__, __LINE__, #condition, errno);       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { LENGTH = 4096 };

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory;
};

static const int ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* Opens the device of this number, and makes one object of each kind. */
static inline void open_end(struct end *end, int number, uint32_t receives_to_share)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count > number);
    CHECK((end->context = ibv_open_device(list[number])));
    ibv_free_device_list(list);
    CHECK((end->pd = ibv_alloc_pd(end->context)));
    CHECK((end->channel = ibv_create_comp_channel(end->context)));
    CHECK((end->cq = ibv_create_cq(end->context, 64, end, end->channel, 0)));
    CHECK((end->memory = calloc(1, LENGTH)));
    CHECK((end->mr = ibv_reg_mr(end->pd, end->memory, LENGTH, ALL_RIGHTS)));
    end->srq = NULL;
    if (receives_to_share) {
        struct ibv_srq_init_attr init = {.attr = {.max_wr = receives_to_share, .max_sge = 1}};
        CHECK((end->srq = ibv_create_srq(end->pd, &init)));
    }
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .srq = end->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 1, 1, 64},
    };
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
    CHECK(init.cap.max_inline_data >= 64);
}

static inline void to_init(struct end *end)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_RIGHTS};
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

/* To RTR, with a peer on this path. */
static inline void to_rtr_by(struct end *end, struct ibv_ah_attr path, uint32_t qp_num)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = path,
    };
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

/* To RTR, with a peer at this address. */
static inline void to_rtr(struct end *end, union ibv_gid gid, uint32_t qp_num)
{
    struct ibv_ah_attr path = {
        .grh = {.dgid = gid, .hop_limit = 64}, .is_global = 1, .port_num = 1};
    to_rtr_by(end, path, qp_num);
}

static inline void to_rts(struct end *end, uint8_t timeout, uint8_t retries)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = timeout,
        .retry_cnt = retries,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };
    CHECK(!ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static inline union ibv_gid gid_of(struct end *end)
{
    union ibv_gid gid;
    CHECK(!ibv_query_gid(end->context, 1, 0, &gid));
    return gid;
}

static inline void connect_ends(struct end *a, struct end *b)
{
    to_init(a);
    to_init(b);
    to_rtr(a, gid_of(b), b->qp->qp_num);
    to_rtr(b, gid_of(a), a->qp->qp_num);
    to_rts(a, 14, 7);
    to_rts(b, 14, 7);
}

static inline void post_recv(struct end *end, uint64_t wr_id, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, length, end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    if (end->srq)
        CHECK(!ibv_post_srq_recv(end->srq, &wr, &bad));
    else
        CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

static inline void post_send(struct end *end, uint64_t wr_id, uint32_t length, int flags)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, length, end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | flags},
                       *bad;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
}

/* The next completion. */
static inline struct ibv_wc complete(struct end *end)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(end->cq, 1, &wc)))
        ;
    CHECK(count == 1);
    return wc;
}

static inline void close_end(struct end *end)
{
    CHECK(!ibv_destroy_qp(end->qp));
    if (end->srq)
        CHECK(!ibv_destroy_srq(end->srq));
    CHECK(!ibv_dereg_mr(end->mr));
    CHECK(!ibv_destroy_cq(end->cq));
    CHECK(!ibv_destroy_comp_channel(end->channel));
    CHECK(!ibv_dealloc_pd(end->pd));
    CHECK(!ibv_close_device(end->context));
    free(end->memory);
}

#endif
