/* Threads that wait for events are cancelled, as the real library's reads allow. */
#include <pthread.h>

#include "two.h"

static void *wait_for_cq(void *end)
{
    for (;;)
        take_event(end, ((struct end *)end)->cq);
    return NULL;
}

static void *wait_for_async(void *end)
{
    struct ibv_async_event event;
    for (;;) {
        CHECK(!ibv_get_async_event(((struct end *)end)->context, &event));
        ibv_ack_async_event(&event);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(!is_wrong(argc, argv));
    struct end a, b;
    start_both(&a, &b);
    pthread_t threads[2];
    CHECK(!pthread_create(&threads[0], NULL, wait_for_cq, &b));
    CHECK(!pthread_create(&threads[1], NULL, wait_for_async, &b));
    for (int i = 0; i < 2; ++i) {
        void *ended;
        CHECK(!pthread_cancel(threads[i]) && !pthread_join(threads[i], &ended));
        CHECK(ended == PTHREAD_CANCELED);
    }
    CHECK(!POST_RECV(&b, 1, MESSAGE) && !POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
