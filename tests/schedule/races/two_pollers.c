/* Two threads wait for the events of one CQ, poll it, and note the messages in the order they come.
 * Race: one thread has polled a message and not noted it yet; the other one polls and notes the next.
 * Fix: hold the lock from before the poll until the message is noted. */
#include "common.h"

enum { MESSAGES = 6 };

static struct end a, b;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int noted, over[2];

static void note(int message)
{
    if (message != noted + 1)
        FAIL("message %d after message %d\n", message, noted);
    noted = message;
    if (noted == MESSAGES)
        CHECK(!close(over[1]));
}

/* Notes the next message, if there is one. */
static int work(void)
{
    int message;
#ifdef RIGHT
    pthread_mutex_lock(&lock);
    int is_one = got(&b, &message);
#else
    int is_one = got(&b, &message);
    pthread_mutex_lock(&lock);
#endif
    if (is_one)
        note(message);
    pthread_mutex_unlock(&lock);
    return is_one;
}

/* Whether there was an event, before the end. */
static int wait_for_event(void)
{
    struct pollfd fds[] = {{.fd = b.channel->fd, .events = POLLIN}, {.fd = over[0]}};
    CHECK(poll(fds, 2, -1) > 0);
    struct ibv_cq *cq;
    void *context;
    if (fds[0].revents && !ibv_get_cq_event(b.channel, &cq, &context))
        ibv_ack_cq_events(cq, 1);
    return !fds[1].revents;
}

static void *worker(void *unused)
{
    do {
        CHECK(!ibv_req_notify_cq(b.cq, 0));
        while (work())
            ;
    } while (wait_for_event());
    return unused;
}

int main(void)
{
    open_side(&a, 0, 8);
    open_side(&b, 1, 8);
    connect_ends(&a, &b);
    CHECK(!pipe(over) && !fcntl(b.channel->fd, F_SETFL, O_NONBLOCK));
    for (int i = 0; i < MESSAGES; i++)
        want(&b, i);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, worker, NULL));
    for (int i = 1; i <= MESSAGES; i++) {
        pause_ms(2);
        say(&a, i);
    }
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(threads[i], NULL));
    close_side(&a);
    close_side(&b);
    return 0;
}
