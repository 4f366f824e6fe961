/* A request for a connection is read, and neither accepted nor rejected: both sides wait for ever. */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "two.h"

static pthread_barrier_t started;

static struct rdma_cm_id *expect_event(struct rdma_event_channel *channel,
                                       enum rdma_cm_event_type kind)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event) && event->event == kind); /* HERE */
    struct rdma_cm_id *id = event->id;
    CHECK(!rdma_ack_cm_event(event));
    return id;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(!rdma_create_qp(id, NULL, &init));
}

static void *serve(void *arg)
{
    int wrong = *(int *)arg;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener;
    struct rdma_conn_param param = {0};
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7471)};
    CHECK(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&any) && !rdma_listen(listener, 1));
    pthread_barrier_wait(&started);

    struct rdma_cm_id *id = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(id);
    if (!wrong)
        CHECK(!rdma_accept(id, &param));
    expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    expect_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(id));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id) && !rdma_destroy_id(listener));
    rdma_destroy_event_channel(channel);
    return NULL;
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    pthread_t server;
    pthread_barrier_init(&started, NULL, 2);
    CHECK(!pthread_create(&server, NULL, serve, &wrong));
    pthread_barrier_wait(&started);

    /* Without a channel of its own each call waits itself. */
    struct rdma_cm_id *id;
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(7471),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
    CHECK(!rdma_resolve_route(id, 2000));
    make_qp(id);
    CHECK(!rdma_connect(id, &param)); /* HERE */
    CHECK(!rdma_disconnect(id));
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
    CHECK(!pthread_join(server, NULL));
    return 0;
}
