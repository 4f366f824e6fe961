/* A client asks a server to add to its sum. If no answer comes for a while it takes the connection for
 * lost, and asks again on a second one. Race: the answer was only slow, and the server adds twice.
 * Fix: the server remembers the number of the last request that it has carried out. */
#include "common.h"

enum { WHILE_MS = 50, AMOUNT = 7, REQUESTS = 2, STOP = -1 };

/* The next message on either connection. Returns which one. */
static int next_of(struct end *ends, int *message, int timeout)
{
    struct pollfd fds[2];
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_req_notify_cq(ends[i].cq, 0));
        fds[i] = (struct pollfd){.fd = ends[i].channel->fd, .events = POLLIN};
    }
    for (;;) {
        for (int i = 0; i < 2; i++)
            if (got(&ends[i], message))
                return i;
        if (poll(fds, 2, timeout) == 0)
            return -1;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents) {
                take(&ends[i]);
                CHECK(!ibv_req_notify_cq(ends[i].cq, 0));
            }
    }
}

static void server(struct end *ends)
{
    int sum = 0, last = 0, message;
    for (;;) {
        int by = next_of(ends, &message, -1);
        if (message == STOP)
            break;
#ifdef RIGHT
        if (message > last)
#endif
            sum += AMOUNT;
        last = message;
        say(&ends[by], sum);
    }
    if (sum != REQUESTS * AMOUNT)
        FAIL("the sum of %d requests is %d\n", last, sum);
}

static void client(struct end *ends)
{
    int sum, by = 0;
    for (int i = 1; i <= REQUESTS; i++) {
        say(&ends[by], i);
        if (next_of(ends, &sum, WHILE_MS) < 0) {
            by = 1;
            say(&ends[by], i);
            CHECK(next_of(ends, &sum, -1) >= 0);
        }
    }
    say(&ends[by], STOP);
}

int main(void)
{
    int peer;
    pid_t child = start_peer(&peer);
    struct end ends[2];
    for (int i = 0; i < 2; i++) {
        open_side(&ends[i], 0, 8);
        connect_to_peer(&ends[i], peer, 0);
        for (int place = 0; place < 8; place++)
            want(&ends[i], place);
    }
    meet(peer);
    if (child)
        server(ends);
    else
        client(ends);
    meet(peer);
    for (int i = 0; i < 2; i++)
        close_side(&ends[i]);
    end_peer(child, peer);
    return 0;
}
