/* Events by epoll, level and edge triggered, and by a blocking wait (CHAN-28), which a signal ends
 * (CHAN-31). */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"

static void nothing(int signal)
{
    (void)signal;
}

static void *interrupt(void *thread)
{
    /* Until the wait has been seen to end: the signal may come before it begins. */
    for (;;) {
        usleep(1000);
        if (pthread_kill(*(pthread_t *)thread, SIGUSR1))
            return NULL;
        pthread_testcancel();
    }
}

static int ready(int epoll)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, 0);
}

static void take_event(struct end *end)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(end->channel, &cq, &context));
    CHECK(cq == end->cq && context == end);
    ibv_ack_cq_events(cq, 1);
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    int level = epoll_create1(0), edge = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(!epoll_ctl(level, EPOLL_CTL_ADD, b.channel->fd, &event));
    event.events = EPOLLIN | EPOLLET;
    CHECK(!epoll_ctl(edge, EPOLL_CTL_ADD, b.channel->fd, &event));

    /* As the kernel gives them: a wait blocks until the program says otherwise. */
    int flags = fcntl(b.channel->fd, F_GETFL);
    CHECK(!(flags & O_NONBLOCK));
    CHECK(!fcntl(b.channel->fd, F_SETFL, flags | O_NONBLOCK));
    struct ibv_cq *cq;
    void *context;
    CHECK(ibv_get_cq_event(b.channel, &cq, &context) == -1 && errno == EAGAIN);
    CHECK(!ready(level) && !ready(edge));

    /* Not armed, so no event. */
    post_recv(&b, 1, 8);
    post_send(&a, 1, 8, 0);
    CHECK(complete(&b).opcode == IBV_WC_RECV && !ready(level));

    /* One event for each arming: level while it is unread, edge once. */
    for (int round = 0; round < 3; ++round) {
        CHECK(!ibv_req_notify_cq(b.cq, 0));
        post_recv(&b, 2, 8);
        post_send(&a, 2, 8, 0);
        CHECK(ready(level) == 1 && ready(level) == 1);
        CHECK(ready(edge) == 1 && ready(edge) == 0);
        take_event(&b);
        CHECK(!ready(level) && !ready(edge));
        CHECK(complete(&b).status == IBV_WC_SUCCESS);
    }

    /* Armed for solicited ones only. */
    CHECK(!ibv_req_notify_cq(b.cq, 1));
    post_recv(&b, 3, 8);
    post_send(&a, 3, 8, 0);
    CHECK(!ready(level));
    post_recv(&b, 4, 8);
    post_send(&a, 4, 8, IBV_SEND_SOLICITED);
    CHECK(ready(level) == 1);
    take_event(&b);

    /* A blocking wait takes what is there, and a signal ends one for nothing. */
    CHECK(!fcntl(b.channel->fd, F_SETFL, flags));
    CHECK(complete(&b).wr_id == 3 && complete(&b).wr_id == 4);
    CHECK(!ibv_req_notify_cq(b.cq, 0));
    post_recv(&b, 5, 8);
    post_send(&a, 5, 8, 0);
    take_event(&b);
    CHECK(complete(&b).wr_id == 5);
    struct sigaction action = {.sa_handler = nothing};
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    pthread_t self = pthread_self(), other;
    CHECK(!pthread_create(&other, NULL, interrupt, &self));
    CHECK(ibv_get_cq_event(b.channel, &cq, &context) == -1 && errno == EINTR);
    CHECK(!pthread_cancel(other) && !pthread_join(other, NULL));

    for (int sends = 0; sends < 7; ++sends)
        CHECK(complete(&a).status == IBV_WC_SUCCESS);
    close(level);
    close(edge);
    close_end(&a);
    close_end(&b);
    return 0;
}
