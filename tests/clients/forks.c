/* A child after fork() is a process of its own, though its parent is in the middle of its work: what the
 * parent made is nothing to it, and what it makes itself works. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static struct end a, b;
static struct ibv_device **list;
static atomic_bool over;
static void exchange(struct end *from, struct end *to)
{
    post_recv(to, 1, 8);
    post_send(from, 2, 8, 0);
    CHECK(complete(to).wr_id == 1 && complete(from).wr_id == 2);
}

static void *work(void *unused)
{
    while (!over)
        exchange(&a, &b);
    return unused;
}

/* With a socket of its parent's a child would keep its address, and nobody would read what comes there. */
static int sockets(void)
{
    int count = 0;
    struct dirent *entry;
    DIR *all = opendir("/proc/self/fd");
    CHECK(all);
    while ((entry = readdir(all))) {
        char name[32] = "";
        if (readlinkat(dirfd(all), entry->d_name, name, sizeof name - 1) > 0)
            count += atoi(entry->d_name) > 2 && !strncmp(name, "socket:", 7);
    }
    closedir(all);
    return count;
}

static void child(int with_timers)
{
    CHECK(sockets() == 0);
    struct ibv_wc wc;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK(ibv_poll_cq(a.cq, 1, &wc) < 0);
    CHECK(ibv_post_send(a.qp, &send, &bad) == EINVAL);
    CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == EINVAL);
    CHECK(!ibv_alloc_pd(a.context) && errno == EINVAL);
    CHECK(ibv_dereg_mr(a.mr) == EINVAL);

    /* The devices are the same. */
    struct ibv_context *context = ibv_open_device(list[0]);
    CHECK(context && context->device == list[0] && !ibv_close_device(context));
    struct end own_a, own_b;
    open_end(&own_a, 0, 0);
    open_end(&own_b, 1, 0);
    CHECK(own_a.qp != a.qp);
    connect_ends(&own_a, &own_b);
    exchange(&own_a, &own_b);
    if (with_timers) {
        /* Nobody answers. */
        struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
        CHECK(!ibv_modify_qp(own_b.qp, &reset, IBV_QP_STATE));
        post_send(&own_a, 3, 8, 0);
        CHECK(complete(&own_a).status == IBV_WC_RETRY_EXC_ERR);
    }
    close_end(&own_a);
    close_end(&own_b);
}

int main(void)
{
    int status;
#ifdef __SANITIZE_ADDRESS__
    puts("skipped: gcc's address sanitizer does not free the locks of its allocator in a child");
    return 0;
#endif
    CHECK((list = ibv_get_device_list(NULL)));
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    pthread_t worker;
    CHECK(!pthread_create(&worker, NULL, work, NULL));
    for (int i = 0; i < 8; ++i) {
        pid_t pid = fork();
        if (!pid) {
            child(i == 0);
            /* What threads of the parent had is no leak of the child's. */
            execlp("true", "true", NULL);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    over = 1;
    CHECK(!pthread_join(worker, NULL));
    exchange(&a, &b);
    close_end(&a);
    close_end(&b);
    ibv_free_device_list(list);
    return 0;
}
