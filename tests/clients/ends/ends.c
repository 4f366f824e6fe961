/* Programs that end in different ways, for tests/ends.rs: the first argument says which. */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../sanitizer/two.h"

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

static void exchange(void)
{
    post_recv(&b, 1, 64);
    post_send(&a, 1, 64, 0);
    complete(&a);
    complete(&b);
}

/* It is nearly always in the simulator, with the lock. */
static void poll_forever(void)
{
    ready();
    for (;;)
        exchange();
}

/* Without the rights of root, as daemons go on. */
static void become_nobody(void)
{
    CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
}

static void close_from(int first, int end)
{
    for (int fd = first; fd < end; ++fd)
        close(fd);
}

static void close_all(void)
{
    close_from(3, 4096);
}

static void limit_to(int which, rlim_t most)
{
    struct rlimit limit = {most, most};
    CHECK(!setrlimit(which, &limit));
}

static void limit(int which)
{
    limit_to(which, 0);
}

/* What daemons, sandboxes and leaks do to their process. */
static void change(const char *how)
{
    if (!strcmp(how, "setuid")) {
        become_nobody();
    } else if (!strcmp(how, "chroot")) {
        CHECK(!chroot("/usr") && !chdir("/"));
    } else if (!strcmp(how, "nofile")) {
        limit(RLIMIT_NOFILE);
    } else if (!strcmp(how, "fdleak")) {
        while (dup(1) >= 0)
            ;
    } else if (!strcmp(how, "fsize")) {
        limit(RLIMIT_FSIZE);
    } else if (!strcmp(how, "noproc")) {
        CHECK(!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
        CHECK(!umount2("/proc", MNT_DETACH));
    } else if (!strcmp(how, "closed")) {
        close_all();
    } else if (!strcmp(how, "stdio")) {
        close_from(0, 3);
    } else if (!strcmp(how, "all")) {
        close_all();
        CHECK(!chroot("/usr") && !chdir("/"));
        limit(RLIMIT_NOFILE);
        limit(RLIMIT_FSIZE);
        become_nobody();
    }
}

/* Opens a device in a process that may not have more of something, and prints what failed. */
static int begin_without(const char *what)
{
    struct ibv_device **list;
    int count;
    if (!strcmp(what, "threads")) {
        /* The limit does not hold for root. */
        limit_to(RLIMIT_NPROC, 1);
        CHECK(!setgroups(0, NULL) && !setgid(65531) && !setuid(65531));
    } else {
        limit_to(RLIMIT_NOFILE, !strcmp(what, "descriptors") ? 3 : 4);
    }
    CHECK((list = ibv_get_device_list(&count)) && count);
    errno = 0;
    CHECK(!ibv_open_device(list[0]));
    printf("%s\n", strerrorname_np(errno));
    return 0;
}

/* A mistake that is certain when it is made. */
static struct ibv_pd *mistake(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    CHECK(list && count);
    struct ibv_context *context = ibv_open_device(list[0]);
    CHECK(context);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    CHECK(pd && !ibv_dealloc_pd(pd) && ibv_dealloc_pd(pd) == EINVAL); /* FIRST */
    return pd;
}

/* A child that waits for the end of the standard input, and outlives the program: that ends when the child has begun. */
static int leave_behind(void)
{
    char byte = 0;
    int begun[2];
    CHECK(!pipe(begun));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child) {
        CHECK(read(begun[0], &byte, 1) == 1);
        return 0;
    }
    CHECK(setsid() > 0);
    mistake();
    ready();
    CHECK(write(begun[1], &byte, 1) == 1);
    CHECK(read(0, &byte, 1) == 0);
    return 0;
}

/* A child that uses what its parent has made, and ends as such children must. */
static int use_after_fork(void)
{
    int status;
    open_end(&a, 0, 0);
    if (!fork())
        _exit(ibv_dereg_mr(a.mr) == EINVAL ? 0 : 1);
    CHECK(wait(&status) > 0 && status == 0);
    close_end(&a);
    return 0;
}

/* Another program, which makes a mistake, in a process that was changed before. */
static int go_on(const char *program, const char *how)
{
    if (strstr(how, "closed"))
        close_all();
    if (strstr(how, "setuid"))
        become_nobody();
    execl(program, program, "mistake", "return", NULL);
    return 1;
}

/* The end: by return, or without a diagnosis. */
static int end_by(const char *how)
{
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "execve"))
        execl("/bin/true", "true", NULL);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    return 0;
}

/* A mistake and a change of the process, in this order or in the other; then the end. */
static int make_mistake(const char *how, const char *end)
{
    struct ibv_pd *destroyed = NULL;
    if (!strcmp(end, "late"))
        open_end(&a, 0, 0);
    else
        destroyed = mistake();
    if (!strcmp(end, "twice"))
        CHECK(ibv_dealloc_pd(destroyed) == EINVAL);
    change(how);
    if (!strcmp(end, "late"))
        CHECK(ibv_dealloc_pd(a.pd) == EBUSY && ibv_dereg_mr(NULL) == EINVAL);
    return end_by(how);
}

/* A send fails since the peer is gone, and the program goes on over a new connection. */
static int recover(const char *how)
{
    start_both(&a, &b);
    use_cqs(&b, b.cq, b.cq);
    post_send(&a, 1, 64, IBV_SEND_SIGNALED);
    expect(&a, IBV_WC_RETRY_EXC_ERR);
    use_cqs(&a, a.cq, a.cq);
    connect_ends(&a, &b);
    exchange();
    return end_by(how);
}

/* Prints each other thread whose mask has room for SIGTERM, and fails if there is no other thread. */
static void print_open_masks(void)
{
    char path[64], line[256], name[256];
    unsigned long long blocked = 0;
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", task->d_name);
        FILE *status = fopen(path, "r");
        CHECK(status);
        while (fgets(line, sizeof(line), status)) {
            sscanf(line, "Name: %255[^\n]", name);
            sscanf(line, "SigBlk: %llx", &blocked);
        }
        fclose(status);
        ++threads;
        if (!(blocked >> (SIGTERM - 1) & 1))
            printf("%s takes SIGTERM\n", name);
    }
    closedir(tasks);
    CHECK(threads);
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";
    if (!strcmp(way, "mistake"))
        return make_mistake(arguments[2], count > 3 ? arguments[3] : "");
    if (!strcmp(way, "without"))
        return begin_without(arguments[2]);
    if (!strcmp(way, "recovers"))
        return recover(arguments[2]);
    if (!strcmp(way, "daemon"))
        return leave_behind();
    if (!strcmp(way, "forks"))
        return use_after_fork();
    if (!strcmp(way, "goes-on"))
        return go_on(arguments[0], arguments[2]);
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
    if (!strcmp(way, "masks"))
        print_open_masks();
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
    } else if (!strcmp(way, "limited")) {
        limit(RLIMIT_FSIZE);
        for (int i = 0; i < 1000; ++i)
            exchange();
    } else if (strcmp(way, "right") && strcmp(way, "masks")) {
        wait_for_event();
    }
    close_end(&a);
    close_end(&b);
    return 0;
}
