/* A thread takes events of a CQ, answers, and stops when a flag is set. Then the CQ is destroyed.
 * Race: if the flag is set after it has answered, it ends without acknowledging the event, for which
 * ibv_destroy_cq waits without end. Fix: acknowledge the event before looking at the flag. */
#include "common.h"

static struct end a, b;
static atomic_int stopping;
static int over[2];

static void *worker(void *unused)
{
    struct pollfd fds[] = {{.fd = b.channel->fd, .events = POLLIN}, {.fd = over[0]}};
    struct ibv_cq *cq;
    void *context;
    int message;
    for (;;) {
        CHECK(poll(fds, 2, -1) > 0);
        if (!fds[0].revents)
            return unused;
        CHECK(!ibv_get_cq_event(b.channel, &cq, &context));
#ifdef RIGHT
        ibv_ack_cq_events(cq, 1);
#endif
        CHECK(!ibv_req_notify_cq(b.cq, 0));
        while (got(&b, &message))
            put(&b, message + 1, 0);
        if (stopping)
            return unused;
#ifndef RIGHT
        ibv_ack_cq_events(cq, 1);
#endif
    }
}

static int ask(int message)
{
    struct ibv_wc wc;
    want(&a, 0);
    say(&a, message);
    while (!got(&a, &message))
        ;
    while (ibv_poll_cq(b.qp->send_cq, 1, &wc) == 0)
        ;
    return message;
}

int main(void)
{
    open_side(&a, 0, 4);
    open_side(&b, 1, 4);
    connect_ends(&a, &b);
    CHECK(!pipe(over) && !ibv_req_notify_cq(b.cq, 0));
    for (int i = 0; i < 2; i++)
        want(&b, i);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, worker, NULL));
    CHECK(ask(1) == 2 && ask(5) == 6);
    close_side(&a);
    stopping = 1;
    CHECK(!close(over[1]) && !pthread_join(thread, NULL));
    close_side(&b);
    return 0;
}
