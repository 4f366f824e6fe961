/* A connection by librdmacm, in one process: each event is acknowledged, and all is destroyed. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "two.h"

static struct rdma_cm_id *expect_event(struct rdma_event_channel *channel,
                                       enum rdma_cm_event_type kind)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event) && event->event == kind);
    struct rdma_cm_id *id = event->id;
    CHECK(!rdma_ack_cm_event(event));
    return id;
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id;
    struct sockaddr_in any = {.sin_family = AF_INET};
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&any) && !rdma_listen(id, 1));
    return id;
}

static struct rdma_cm_id *route_to(struct rdma_event_channel *channel, uint16_t port)
{
    struct rdma_cm_id *id;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = port,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
    expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_resolve_route(id, 2000));
    expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &init));
}

static void exchange(struct rdma_cm_id *from, struct rdma_cm_id *to, struct ibv_mr *receives)
{
    static char text[MESSAGE] = "hello";
    struct ibv_mr *sends = rdma_reg_msgs(from, text, sizeof text);
    struct ibv_wc wc;
    CHECK(sends);
    CHECK(!rdma_post_send(from, NULL, text, sizeof text, sends, IBV_SEND_SIGNALED));
    CHECK(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!strcmp(receives->addr, text));
    CHECK(!rdma_dereg_mr(sends) && !rdma_dereg_mr(receives));
}

static void end(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

int main(void)
{
    struct rdma_event_channel *servers = rdma_create_event_channel();
    struct rdma_event_channel *clients = rdma_create_event_channel();
    CHECK(servers && clients);
    struct rdma_cm_id *passive = listen_at(servers);
    struct rdma_cm_id *client = route_to(clients, rdma_get_src_port(passive));
    make_qp(client);
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    CHECK(!rdma_connect(client, &param));
    struct rdma_cm_id *server = expect_event(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(server);
    static char received[MESSAGE];
    struct ibv_mr *receives = rdma_reg_msgs(server, received, sizeof received);
    CHECK(receives && !rdma_post_recv(server, NULL, received, sizeof received, receives));
    CHECK(!rdma_accept(server, &param));
    expect_event(clients, RDMA_CM_EVENT_ESTABLISHED);
    expect_event(servers, RDMA_CM_EVENT_ESTABLISHED);

    exchange(client, server, receives);
    CHECK(!rdma_disconnect(client));
    expect_event(servers, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(server));
    expect_event(clients, RDMA_CM_EVENT_DISCONNECTED);
    end(client);
    end(server);
    CHECK(!rdma_destroy_id(passive));
    rdma_destroy_event_channel(clients);
    rdma_destroy_event_channel(servers);
    return 0;
}
