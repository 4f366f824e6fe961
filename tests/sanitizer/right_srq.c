/* A shared receive queue: its limit is set, its event is read, and its places are filled again. */
#include "two.h"

enum { PLACES = 8, LIMIT = 4, TAKEN = PLACES - LIMIT + 1, ROUNDS = 3 };

static void fill(struct end *end, int count)
{
    for (int i = 0; i < count; ++i) {
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = SGE(end, MESSAGE), .num_sge = 1}, *bad;
        CHECK(!ibv_post_srq_recv(end->srq, &wr, &bad));
    }
    struct ibv_srq_attr attr = {.srq_limit = LIMIT};
    CHECK(!ibv_modify_srq(end->srq, &attr, IBV_SRQ_LIMIT));
}

static void take_limit(struct end *end)
{
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(end->context, &event));
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == end->srq);
    ibv_ack_async_event(&event);
}

/* It takes no receive from the queue any more as soon as an event says so. */
static void end_queue_pair(struct end *end)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_async_event event;
    CHECK(!ibv_modify_qp(end->qp, &error, IBV_QP_STATE));
    CHECK(!ibv_get_async_event(end->context, &event));
    CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == end->qp);
    ibv_ack_async_event(&event);
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, PLACES);
    connect_ends(&a, &b);
    fill(&b, PLACES);
    for (int round = 0; round < ROUNDS; ++round) {
        /* One below the limit is left. */
        for (int i = 0; i < TAKEN; ++i) {
            CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
            expect(&a, IBV_WC_SUCCESS);
            expect(&b, IBV_WC_SUCCESS);
        }
        take_limit(&b);
        fill(&b, TAKEN);
    }
    end_queue_pair(&b);
    close_both(&a, &b);
    return 0;
}
