/* A thread sends a heartbeat now and then until a flag stops it. Main sets the flag, and destroys the
 * queue pair.
 * Race: the thread has looked whether to stop, and posts to what is destroyed. Fix: join it before. */
#include "common.h"

static struct end a, b;
static atomic_int stopping;

static void *heart(void *unused)
{
    struct ibv_wc wc;
    for (int beat = 0; !stopping; beat++) {
        put(&a, beat, 0);
        pause_ms(4);
        while (!stopping && ibv_poll_cq(a.qp->send_cq, 1, &wc) > 0)
            CHECK(wc.status == IBV_WC_SUCCESS);
    }
    return unused;
}

int main(void)
{
    open_side(&a, 0, 16);
    open_side(&b, 1, 16);
    connect_ends(&a, &b);
    for (int i = 0; i < 16; i++)
        want(&b, i);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, heart, NULL));
    CHECK(next(&b) == 0);
    pause_ms(38);
    stopping = 1;
#ifdef RIGHT
    CHECK(!pthread_join(thread, NULL));
#endif
    close_side(&a);
    close_side(&b);
#ifndef RIGHT
    CHECK(!pthread_join(thread, NULL));
#endif
    return 0;
}
