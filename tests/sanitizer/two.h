/* Shared by the programs: two ends in one process, one on each device. Possible mistakes are
 * macros, so that they have the line of the program. */
#ifndef TWO_H
#define TWO_H

#include <fcntl.h>

#include "../clients/bench.h"

enum {
    MESSAGE = 64,
    INIT_MASK = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    RTS_MASK = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
};

/* The beginning of an end's memory. */
#define SGE(end, bytes)                                                                            \
    (&(struct ibv_sge){                                                                            \
        .addr = (uintptr_t)(end)->memory, .length = (bytes), .lkey = (end)->mr->lkey})

#define POST_RECV(end, number, bytes)                                                              \
    ibv_post_recv((end)->qp,                                                                       \
                  &(struct ibv_recv_wr){                                                           \
                      .wr_id = (number), .sg_list = SGE(end, bytes), .num_sge = 1},                \
                  &(struct ibv_recv_wr *){NULL})

#define POST_SEND(end, number, bytes, flags)                                                       \
    ibv_post_send((end)->qp,                                                                       \
                  &(struct ibv_send_wr){.wr_id = (number),                                         \
                                        .sg_list = SGE(end, bytes),                                \
                                        .num_sge = 1,                                              \
                                        .opcode = IBV_WR_SEND,                                     \
                                        .send_flags = (flags)},                                    \
                  &(struct ibv_send_wr *){NULL})

#define POST_WRITE(end, number, bytes, flags, address, key)                                        \
    ibv_post_send((end)->qp,                                                                       \
                  &(struct ibv_send_wr){.wr_id = (number),                                         \
                                        .sg_list = SGE(end, bytes),                                \
                                        .num_sge = 1,                                              \
                                        .opcode = IBV_WR_RDMA_WRITE,                               \
                                        .send_flags = (flags),                                     \
                                        .wr.rdma = {(uintptr_t)(address), (key)}},                 \
                  &(struct ibv_send_wr *){NULL})

/* Whether the mistake is to be made. */
static inline int is_wrong(int argc, char **argv)
{
    CHECK(argc == 2 && (!strcmp(argv[1], "wrong") || !strcmp(argv[1], "right")));
    return argv[1][0] == 'w';
}

static inline void open_both(struct end *a, struct end *b)
{
    open_end(a, 0, 0);
    open_end(b, 1, 0);
}

/* Connected. */
static inline void start_both(struct end *a, struct end *b)
{
    open_both(a, b);
    connect_ends(a, b);
}

/* What leads to the peer: a program may change one thing of it. */
static inline struct ibv_qp_attr rtr_to(struct end *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = {.grh = {.dgid = gid_of(peer), .hop_limit = 64}, .is_global = 1, .port_num = 1},
    };
    return attr;
}

static inline struct ibv_qp_attr rts(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    return attr;
}

/* Makes a queue pair on these CQs, in the place of the one that was. */
static inline void use_cqs(struct end *end, struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
    CHECK(!ibv_destroy_qp(end->qp));
    struct ibv_qp_init_attr init = {.send_cq = send_cq,
                                    .recv_cq = recv_cq,
                                    .srq = end->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {16, 16, 1, 1, 64}};
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
}

/* Waits for the event of this CQ, and acknowledges it. */
static inline void take_event(struct end *end, struct ibv_cq *expected)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(end->channel, &cq, &context) && cq == expected);
    ibv_ack_cq_events(cq, 1);
}

static inline void expect(struct end *end, enum ibv_wc_status status)
{
    CHECK(complete(end).status == status);
}

static inline void is_empty(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

/* Reads the device's reports of errors. */
static inline void hear(struct end *end)
{
    struct ibv_async_event event;
    int fd = end->context->async_fd;
    CHECK(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    while (!ibv_get_async_event(end->context, &event))
        ibv_ack_async_event(&event);
    CHECK(errno == EAGAIN);
}

static inline void close_both(struct end *a, struct end *b)
{
    hear(a);
    hear(b);
    close_end(a);
    close_end(b);
}

#endif
