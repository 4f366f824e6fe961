/* An event of an id is not acknowledged: the destroy of the id waits for that for ever. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct rdma_cm_event *event;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(7471),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));

    CHECK(!rdma_get_cm_event(channel, &event)); /* HERE */
    CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    if (!wrong)
        CHECK(!rdma_ack_cm_event(event));
    CHECK(!rdma_destroy_id(id)); /* HERE */
    rdma_destroy_event_channel(channel);
    return 0;
}
