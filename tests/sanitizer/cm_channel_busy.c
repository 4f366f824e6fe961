/* An event channel is destroyed before the ids that have it. */
#include "cm.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct connection both;
    connect_cm(&both);
    CHECK(!rdma_disconnect(both.client));
    expect_event(both.servers, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(both.server));
    if (wrong)
        rdma_destroy_event_channel(both.servers); /* HERE */
    close_cm(&both);
    return 0;
}
