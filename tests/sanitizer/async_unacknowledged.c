/* An asynchronous event is not acknowledged: the destroy of what it is about waits for that for ever. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 8);
    connect_ends(&a, &b);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));

    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(b.context, &event)); /* HERE */
    CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    if (!wrong)
        ibv_ack_async_event(&event);
    close_both(&a, &b);
    return 0;
}
