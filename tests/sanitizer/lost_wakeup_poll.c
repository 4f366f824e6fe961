/* A message comes between the last poll and the arming, and the program sleeps in epoll: the descriptor tells nothing. */
#include <sys/epoll.h>

#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    is_empty(b.cq);

    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(0);
    CHECK(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, b.channel->fd, &event));
    struct ibv_wc wc;
    CHECK(!ibv_req_notify_cq(b.cq, 0)); /* HERE */
    if (wrong || ibv_poll_cq(b.cq, 1, &wc) == 0)
        CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
    close_both(&a, &b);
    return 0;
}
