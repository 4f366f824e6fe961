/* Two ends that rdma_cm connects, whose calls wait themselves: a thread serves one client. */
#ifndef CM_SYNC_H
#define CM_SYNC_H

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "two.h"

/* A side: its id, with a queue pair whose sends are all signaled, and its memory. */
struct side {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    char *memory;
};

/* The server, and what it accepts with. */
struct server {
    struct side side;
    struct rdma_cm_id *listener;
    struct rdma_conn_param param;
    pthread_t thread;
};

static inline struct rdma_cm_id *cm_id(void)
{
    struct rdma_cm_id *id;
    /* Without a channel of its own each call waits itself. */
    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
    return id;
}

static inline void equip(struct side *side)
{
    struct ibv_qp_init_attr init = {
        .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
    CHECK(!rdma_create_qp(side->id, NULL, &init));
    CHECK((side->memory = calloc(1, LENGTH)));
    CHECK((side->mr = ibv_reg_mr(side->id->pd, side->memory, LENGTH, ALL_RIGHTS)));
}

static inline void *serve(void *arg)
{
    struct server *server = arg;
    CHECK(!rdma_get_request(server->listener, &server->side.id));
    equip(&server->side);
    CHECK(!rdma_accept(server->side.id, &server->param));
    return NULL;
}

/* Connects with these arguments of rdma_connect. */
static inline void connect_sides(struct side *client, struct server *server,
                                 struct rdma_conn_param param)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(7474),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server->listener = cm_id();
    CHECK(!rdma_bind_addr(server->listener, (struct sockaddr *)&at));
    CHECK(!rdma_listen(server->listener, 1));
    CHECK(!pthread_create(&server->thread, NULL, serve, server));
    client->id = cm_id();
    CHECK(!rdma_resolve_addr(client->id, NULL, (struct sockaddr *)&at, 2000));
    CHECK(!rdma_resolve_route(client->id, 2000));
    equip(client);
    CHECK(!rdma_connect(client->id, &param));
    CHECK(!pthread_join(server->thread, NULL));
}

static inline void *disconnect(void *arg)
{
    struct side *side = arg;
    CHECK(!rdma_disconnect(side->id));
    CHECK(!ibv_dereg_mr(side->mr));
    free(side->memory);
    rdma_destroy_qp(side->id);
    CHECK(!rdma_destroy_id(side->id));
    return NULL;
}

/* Both at once, since each call waits for the other side. */
static inline void disconnect_sides(struct side *client, struct server *server)
{
    CHECK(!pthread_create(&server->thread, NULL, disconnect, &server->side));
    disconnect(client);
    CHECK(!pthread_join(server->thread, NULL));
    CHECK(!rdma_destroy_id(server->listener));
}

static inline enum ibv_wc_status next_status(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        ;
    return wc.status;
}

/* Work of a side on its own memory. */
#define POST(side, code, there)                                                                    \
    ibv_post_send((side)->id->qp,                                                                  \
                  &(struct ibv_send_wr){.wr_id = 1,                                                \
                                        .sg_list = SGE(side, MESSAGE),                             \
                                        .num_sge = 1,                                              \
                                        .opcode = (code),                                          \
                                        .wr.rdma = {(uintptr_t)(there)->memory, (there)->mr->rkey}}, \
                  &(struct ibv_send_wr *){NULL})

#endif
