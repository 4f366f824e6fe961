/* Programs that end in different ways, for tests/ends.rs: the first argument says which. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../bench.h"

static struct end a, b;

/* It has begun: whoever is to send a signal may do so. */
static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static void wait_for_event(void)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_req_notify_cq(a.cq, 0));
    ready();
    /* It is not to notice the signal that ends it: no EINTR. */
    CHECK(!ibv_get_cq_event(a.channel, &cq, &context));
}

static void exit_3(int signal)
{
    (void)signal;
    exit(3);
}

static void stay(int signal)
{
    (void)signal;
    ready();
    for (;;)
        pause();
}

/* The page of a message cannot be read: the device's copy of it, which has the lock, comes to no end. */
static void hang_with_lock(void)
{
    post_recv(&b, 1, 64);
    CHECK(signal(SIGSEGV, stay) != SIG_ERR);
    char *page = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK((a.mr = ibv_reg_mr(a.pd, page, LENGTH, ALL_RIGHTS)));
    CHECK(!mprotect(page, LENGTH, PROT_NONE));
    a.memory = page;
    post_send(&a, 1, 64, 0);
    complete(&a);
}

/* It is nearly always in the simulator, with the lock. */
static void poll_forever(void)
{
    ready();
    for (;;) {
        post_recv(&b, 1, 64);
        post_send(&a, 1, 64, 0);
        complete(&a);
        complete(&b);
    }
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    if (!strcmp(way, "no-device"))
        return 0;
    if (!strcmp(way, "list")) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        CHECK(list);
        ibv_free_device_list(list);
        return 0;
    }
    if (!strcmp(way, "own-before"))
        CHECK(signal(SIGTERM, exit_3) != SIG_ERR);
    if (!strcmp(way, "ignores"))
        CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    if (!strcmp(way, "own-after"))
        CHECK(signal(SIGTERM, exit_3) != SIG_ERR);
    if (!strcmp(way, "alarm"))
        alarm(1);
    if (!strcmp(way, "unclosed"))
        return 0;
    if (!strcmp(way, "_exit"))
        _exit(0);
    if (!strcmp(way, "crash"))
        raise(SIGSEGV);
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "hang-with-lock"))
        hang_with_lock();
    if (!strcmp(way, "busy"))
        poll_forever();
    if (!strcmp(way, "ignores")) {
        raise(SIGTERM);
    } else if (!strcmp(way, "children")) {
        /* One that has used no device, one that has, and one that a signal ends. */
        if (!fork())
            exit(0);
        if (!fork()) {
            open_end(&a, 0, 0);
            kill(getpid(), SIGTERM);
            for (;;)
                pause();
        }
        if (!fork()) {
            kill(getpid(), SIGTERM);
            for (;;)
                pause();
        }
        int status = 0, signals = 0;
        for (int i = 0; i < 3; ++i) {
            CHECK(wait(&status) > 0);
            signals += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        }
        CHECK(signals == 2);
    } else if (strcmp(way, "right")) {
        wait_for_event();
    }
    close_end(&a);
    close_end(&b);
    return 0;
}
