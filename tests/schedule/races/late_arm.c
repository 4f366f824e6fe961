/* The client polls an empty CQ, arms it, and waits.
 * Race: the answer of the server comes between the last poll and the arming. No event reports it.
 * Fix: poll once more after the CQ has been armed. */
#include "common.h"

static int answer(struct end *end)
{
    int message;
    for (;;) {
        if (got(end, &message))
            return message;
        CHECK(!ibv_req_notify_cq(end->cq, 0));
#ifdef RIGHT
        if (got(end, &message))
            return message;
#endif
        take(end);
    }
}

/* Doubles the number. */
static void server(struct end *end)
{
    say(end, 2 * next(end));
}

static void client(struct end *end)
{
    put(end, 21, 0);
    CHECK(answer(end) == 42);
    sent(end);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    struct end end;
    open_side(&end, 0, 4);
    connect_to_peer(&end, peer, 0);
    want(&end, 0);
    meet(peer);
    if (child)
        client(&end);
    else
        server(&end);
    meet(peer);
    close_side(&end);
    end_peer(child, peer);
    return 0;
}
