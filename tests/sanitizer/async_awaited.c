/* LAST_WQE_REACHED is waited for, but the queue pair has no SRQ. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_end(&a, 0, 0);
    open_end(&b, 1, wrong ? 0 : 4);
    connect_ends(&a, &b);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_async_event event;
    CHECK(!ibv_modify_qp(b.qp, &error, IBV_QP_STATE));
    CHECK(!ibv_get_async_event(b.context, &event)); /* HERE */
    CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&event);
    close_both(&a, &b);
    return 0;
}
