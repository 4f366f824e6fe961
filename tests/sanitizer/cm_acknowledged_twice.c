/* Acknowledges an event of rdma_cm twice: it is gone after the first. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    struct rdma_cm_event *event;
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons(7471),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&here, 2000));
    CHECK(!rdma_get_cm_event(channel, &event));
    CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_ack_cm_event(event));
    if (wrong)
        CHECK(rdma_ack_cm_event(event) == -1 && errno == EINVAL); /* HERE */
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    return 0;
}
