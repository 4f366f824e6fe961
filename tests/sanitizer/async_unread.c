/* The port of the second device is down. An event tells of it, which nobody reads. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv), count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count == 2);
    struct ibv_context *context = ibv_open_device(list[1]);
    CHECK(context);
    ibv_free_device_list(list);
    struct ibv_port_attr port;
    do
        CHECK(!ibv_query_port(context, 1, &port));
    while (port.state == IBV_PORT_ACTIVE);

    if (!wrong) {
        struct ibv_async_event event;
        CHECK(!ibv_get_async_event(context, &event) && event.event_type == IBV_EVENT_PORT_ERR);
        ibv_ack_async_event(&event);
    }
    CHECK(!ibv_close_device(context)); /* HERE */
    return 0;
}
