/* An id without a channel of the program connects by itself: the call reads ESTABLISHED. The program
 * waits for that event once more. */
#include <pthread.h>

#include "cm.h"

static void *serve(void *arg)
{
    struct connection *of = arg;
    struct rdma_conn_param param = {0};
    of->server = expect_event(of->servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(of->server);
    CHECK(!rdma_accept(of->server, &param));
    expect_event(of->servers, RDMA_CM_EVENT_ESTABLISHED);
    return NULL;
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct connection both;
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    pthread_t server;
    start_listener(&both);
    CHECK(!pthread_create(&server, NULL, serve, &both));

    struct sockaddr_in to = loopback(rdma_get_src_port(both.listener));
    CHECK(!rdma_create_id(NULL, &both.client, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(both.client, NULL, (struct sockaddr *)&to, 2000));
    CHECK(!rdma_resolve_route(both.client, 2000));
    make_qp(both.client);
    CHECK(!rdma_connect(both.client, &param));
    CHECK(!pthread_join(server, NULL));
    CHECK((both.clients = rdma_create_event_channel()));
    CHECK(!rdma_migrate_id(both.client, both.clients));
    struct rdma_cm_event *event;
    if (wrong)
        CHECK(!rdma_get_cm_event(both.clients, &event)); /* HERE */
    CHECK(!rdma_disconnect(both.client));
    expect_event(both.servers, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(both.server));
    close_cm(&both);
    return 0;
}
