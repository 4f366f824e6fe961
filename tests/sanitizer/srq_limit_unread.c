/* The event of an SRQ's limit is not read: the SRQ runs dry, and the last message waits. */
#include "two.h"

enum { PLACES = 4, LIMIT = 2, MESSAGES = PLACES + 1 };

static void fill(struct end *end, int count)
{
    for (int i = 0; i < count; ++i)
        post_recv(end, i, MESSAGE);
    struct ibv_srq_attr attr = {.srq_limit = LIMIT};
    CHECK(!ibv_modify_srq(end->srq, &attr, IBV_SRQ_LIMIT)); /* HERE */
}

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    open_end(&a, 0, 0);
    open_end(&b, 1, PLACES);
    connect_ends(&a, &b);
    fill(&b, PLACES);
    for (int i = 0; i < MESSAGES; ++i) {
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
        if (i == PLACES && wrong)
            break;
        expect(&a, IBV_WC_SUCCESS);
        expect(&b, IBV_WC_SUCCESS);
        if (i == PLACES - LIMIT && !wrong) {
            struct ibv_async_event event;
            CHECK(!ibv_get_async_event(b.context, &event));
            CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
            ibv_ack_async_event(&event);
            fill(&b, PLACES - LIMIT);
        }
    }
    close_end(&a);
    close_end(&b);
    return 0;
}
