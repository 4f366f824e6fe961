/* Shared by the programs: an end with a CQ of its own for sends, messages that are numbers, waits.
 *
 * A program without RIGHT has one race. With RIGHT it has none. */
#ifndef COMMON_H
#define COMMON_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../../clients/peers.h"

/* An end whose receives alone make events. Its queue pair has this many places for each kind. */
static inline void open_side(struct end *end, int number, uint32_t depth)
{
    open_end(end, number, 0);
    CHECK(!ibv_destroy_qp(end->qp));
    struct ibv_cq *sends = ibv_create_cq(end->context, 64, NULL, NULL, 0);
    CHECK(sends);
    struct ibv_qp_init_attr init = {.send_cq = sends,
                                    .recv_cq = end->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {depth, depth, 1, 1, 0}};
    CHECK((end->qp = ibv_create_qp(end->pd, &init)));
}

static inline void close_side(struct end *end)
{
    struct ibv_cq *sends = end->qp->send_cq;
    CHECK(!ibv_destroy_qp(end->qp) && !ibv_destroy_cq(sends) && !ibv_dereg_mr(end->mr));
    CHECK(!ibv_destroy_cq(end->cq) && !ibv_destroy_comp_channel(end->channel));
    CHECK(!ibv_dealloc_pd(end->pd) && !ibv_close_device(end->context));
    free(end->memory);
}

/* Messages are sent from the start of the memory, and received at place `number` of the rest. */
enum { PLACES = 16, PLACE = LENGTH / 2 / PLACES };

static inline int *received(struct end *end, uint64_t number)
{
    return (int *)(end->memory + LENGTH / 2 + number % PLACES * PLACE);
}

static inline void want(struct end *end, uint64_t number)
{
    struct ibv_sge sge = {(uintptr_t)received(end, number), PLACE, end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

static inline void put(struct end *end, int message, int flags)
{
    memcpy(end->memory, &message, sizeof message);
    struct ibv_sge sge = {(uintptr_t)end->memory, sizeof message, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | flags},
                       *bad;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
}

/* Waits until the last send is complete. */
static inline void sent(struct end *end)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(end->qp->send_cq, 1, &wc)))
        ;
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
}

static inline void say(struct end *end, int message)
{
    put(end, message, 0);
    sent(end);
}

/* Takes one event. */
static inline void take(struct end *end)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(end->channel, &cq, &context) && cq == end->cq);
    ibv_ack_cq_events(cq, 1);
}

/* Whether a message was there. */
static inline int got(struct end *end, int *message)
{
    struct ibv_wc wc;
    int count = ibv_poll_cq(end->cq, 1, &wc);
    CHECK(count >= 0);
    if (count == 0)
        return 0;
    CHECK(wc.status == IBV_WC_SUCCESS);
    *message = *received(end, wc.wr_id);
    return 1;
}

/* The next message. Sleeps until there is one. */
static inline int next(struct end *end)
{
    int message;
    while (!got(end, &message)) {
        CHECK(!ibv_req_notify_cq(end->cq, 0));
        if (got(end, &message))
            break;
        take(end);
    }
    return message;
}

/* Ends the program with a message. */
#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, __VA_ARGS__);                                                              \
        exit(1);                                                                                   \
    } while (0)

static inline void pause_ms(int milliseconds)
{
    usleep(milliseconds * 1000);
}

#endif
