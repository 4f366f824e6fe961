/* The receiver asks for solicited events alone, and says in a flag that it sleeps: the sender solicits
 * an event only then.
 * Race: the sender reads the flag before the receiver sleeps. Fix: always solicit an event. */
#include "common.h"

enum { MESSAGES = 6 };

static struct end a, b;
static atomic_int sleeps;

static void *sender(void *unused)
{
    for (int i = 1; i <= MESSAGES; i++) {
#ifdef RIGHT
        put(&a, i, IBV_SEND_SOLICITED);
#else
        put(&a, i, sleeps ? IBV_SEND_SOLICITED : 0);
#endif
        sent(&a);
        pause_ms(2);
    }
    return unused;
}

static int receive(void)
{
    int message;
    for (;;) {
        if (got(&b, &message))
            return message;
        CHECK(!ibv_req_notify_cq(b.cq, 1));
        if (got(&b, &message))
            return message;
        sleeps = 1;
        take(&b);
        sleeps = 0;
    }
}

int main(void)
{
    open_side(&a, 0, 8);
    open_side(&b, 1, 8);
    connect_ends(&a, &b);
    for (int i = 0; i < MESSAGES; i++)
        want(&b, i);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, sender, NULL));
    for (int i = 1; i <= MESSAGES; i++)
        CHECK(receive() == i);
    CHECK(!pthread_join(thread, NULL));
    close_side(&a);
    close_side(&b);
    return 0;
}
