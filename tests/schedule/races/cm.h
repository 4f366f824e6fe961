/* Shared by the programs of rdma_cm: a listener and a client, and an end for an id. */
#ifndef CM_H
#define CM_H

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "common.h"

static inline struct rdma_cm_id *expect(struct rdma_event_channel *channel,
                                        enum rdma_cm_event_type kind)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event));
    if (event->event != kind)
        FAIL("%s, not %s\n", rdma_event_str(event->event), rdma_event_str(kind));
    struct rdma_cm_id *id = event->id;
    CHECK(!rdma_ack_cm_event(event));
    return id;
}

/* Gives the id a queue pair with one receive, and the end its CQs and memory. */
static inline void open_id(struct rdma_cm_id *id, struct end *end)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK((end->channel = ibv_create_comp_channel(id->verbs)));
    CHECK((end->cq = ibv_create_cq(id->verbs, 8, NULL, end->channel, 0)));
    CHECK((init.send_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0)));
    init.recv_cq = end->cq;
    CHECK(!rdma_create_qp(id, NULL, &init));
    end->qp = id->qp;
    CHECK((end->memory = calloc(1, LENGTH)));
    CHECK((end->mr = ibv_reg_mr(id->pd, end->memory, LENGTH, IBV_ACCESS_LOCAL_WRITE)));
    want(end, 0);
}

static inline void close_id(struct rdma_cm_id *id, struct end *end)
{
    struct ibv_cq *sends = end->qp->send_cq;
    rdma_destroy_qp(id);
    CHECK(!ibv_dereg_mr(end->mr) && !ibv_destroy_cq(end->cq) && !ibv_destroy_cq(sends));
    CHECK(!ibv_destroy_comp_channel(end->channel) && !rdma_destroy_id(id));
    free(end->memory);
}

/* Tells the peer the port. */
static inline struct rdma_cm_id *start_listener(struct rdma_event_channel *channel, int peer)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct rdma_cm_id *listener;
    CHECK(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&any) && !rdma_listen(listener, 1));
    uint16_t port = rdma_get_src_port(listener);
    tell(peer, &port, sizeof port);
    return listener;
}

/* Connected to the listener of the peer. */
static inline struct rdma_cm_id *start_client(struct rdma_event_channel *channel, int peer,
                                              struct end *end)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id;
    hear(peer, &to.sin_port, sizeof to.sin_port);
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_resolve_route(id, 2000));
    expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    open_id(id, end);
    CHECK(!rdma_connect(id, &param));
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

#endif
