/* A program that closes all descriptors, as one does that becomes a daemon, and gets their numbers for files
 * of its own: nothing is written into them, and none is closed but what the program closes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

enum { FIRST = 3, LOW = 64, LAST = 1500 };

/* Takes all numbers: low ones for a file and for eventfds by turns, and the others for the file. */
static void take_all(int file)
{
    for (int fd = FIRST; fd < LAST; ++fd) {
        if (fd < LOW && fd % 2)
            CHECK(dup3(eventfd(0, 0), fd, 0) == fd || errno == EINVAL);
        else
            CHECK(dup2(file, fd) == fd);
    }
}

static void check_unwritten(int file)
{
    CHECK(lseek(file, 0, SEEK_END) == 0);
    for (int fd = FIRST; fd < LOW; fd += 2) {
        struct pollfd ask = {.fd = fd, .events = POLLIN};
        CHECK(poll(&ask, 1, 0) == 0);
    }
}

int main(void)
{
    struct rlimit limit;
    CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max >= LAST);
    limit.rlim_cur = limit.rlim_max;
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    struct end a, b;
    open_end(&a, 0, 8);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    closefrom(FIRST);
    int file = fcntl(memfd_create("own", 0), F_DUPFD, LAST);
    CHECK(file >= LAST);
    take_all(file);
    check_unwritten(file);

    /* An event of a channel comes and goes, and so does one of the context. */
    CHECK(!ibv_req_notify_cq(a.cq, 0) && !ibv_req_notify_cq(b.cq, 0));
    post_recv(&a, 1, 8);
    post_send(&b, 2, 8, 0);
    complete(&a);
    complete(&b);
    check_unwritten(file);
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_get_cq_event(a.channel, &cq, &context) && cq == a.cq);
    ibv_ack_cq_events(cq, 1);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
    check_unwritten(file);
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(a.context, &event));
    CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&event);
    check_unwritten(file);

    /* What is closed is what the program names. */
    int named[] = {a.channel->fd, a.context->async_fd, a.context->cmd_fd};
    close_end(&a);
    for (int fd = FIRST; fd < LAST; ++fd) {
        int is_named = fd == named[0] || fd == named[1] || fd == named[2];
        CHECK(is_named || fcntl(fd, F_GETFD) >= 0);
    }
    return 0;
}
