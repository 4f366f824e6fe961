/* Shared by programs of rdma_cm: a connection of two ids of one process, each with a channel. */
#ifndef CM_H
#define CM_H

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "two.h"

struct connection {
    struct rdma_event_channel *servers, *clients;
    struct rdma_cm_id *listener, *server, *client;
};

static const struct sockaddr_in ANY = {.sin_family = AF_INET};

/* The code of 67 ms. */
static uint8_t TIMEOUT = 14;

static inline struct rdma_cm_id *expect_event(struct rdma_event_channel *channel,
                                              enum rdma_cm_event_type kind)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event) && event->event == kind);
    struct rdma_cm_id *id = event->id;
    CHECK(!rdma_ack_cm_event(event));
    return id;
}

static inline void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &init));
}

/* The address of a listener on this machine. */
static inline struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = port,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline void start_listener(struct connection *of)
{
    CHECK((of->servers = rdma_create_event_channel()));
    CHECK(!rdma_create_id(of->servers, &of->listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(of->listener, (struct sockaddr *)&ANY) && !rdma_listen(of->listener, 1));
}

/* The client has asked for the connection, and the server has not read that yet. */
static inline void start_client(struct connection *of)
{
    struct sockaddr_in to = loopback(rdma_get_src_port(of->listener));
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    CHECK((of->clients = rdma_create_event_channel()));
    CHECK(!rdma_create_id(of->clients, &of->client, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(of->client, NULL, (struct sockaddr *)&to, 2000));
    expect_event(of->clients, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_resolve_route(of->client, 2000));
    expect_event(of->clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
    CHECK(!rdma_set_option(of->client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &TIMEOUT, 1));
    make_qp(of->client);
    CHECK(!rdma_connect(of->client, &param));
}

static inline void accept_client(struct connection *of)
{
    struct rdma_conn_param param = {.rnr_retry_count = 7};
    of->server = expect_event(of->servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(of->server);
    CHECK(!rdma_accept(of->server, &param));
    expect_event(of->clients, RDMA_CM_EVENT_ESTABLISHED);
    expect_event(of->servers, RDMA_CM_EVENT_ESTABLISHED);
}

static inline void connect_cm(struct connection *of)
{
    start_listener(of);
    start_client(of);
    accept_client(of);
}

static inline void end_id(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

/* Both sides have disconnected. */
static inline void close_cm(struct connection *of)
{
    end_id(of->client);
    end_id(of->server);
    CHECK(!rdma_destroy_id(of->listener));
    rdma_destroy_event_channel(of->clients);
    rdma_destroy_event_channel(of->servers);
}

#endif
