/* An edge-triggered wait wakes once for two events. Only the first is read, and nothing wakes for the other. */
#include <sys/epoll.h>
#include <unistd.h>

#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq *receives = ibv_create_cq(b.context, 64, NULL, b.channel, 0), *cq;
    CHECK(receives);
    use_cqs(&b, b.cq, receives);
    connect_ends(&a, &b);
    int epoll = epoll_create1(0), fd = b.channel->fd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    CHECK(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));

    /* One for the receive, and one for the send. */
    CHECK(!ibv_req_notify_cq(b.cq, 0) && !ibv_req_notify_cq(receives, 0));
    CHECK(!POST_RECV(&b, 1, MESSAGE) && !POST_RECV(&a, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    CHECK(!POST_SEND(&b, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&a, IBV_WC_SUCCESS);

    struct ibv_wc wc;
    void *context;
    CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
    while (!ibv_get_cq_event(b.channel, &cq, &context)) { /* HERE */
        ibv_ack_cq_events(cq, 1);
        CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
        if (wrong)
            break;
    }
    CHECK(epoll_wait(epoll, &event, 1, 10) == 0);

    close(epoll);
    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(receives));
    close_both(&a, &b);
    return 0;
}
