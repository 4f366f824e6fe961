/* How long verbs take through libibverbs, whatever is behind it: a table of time and processor time of the
 * thread on the standard output. Between the first two devices, or on the only one. The number says how often
 * each is done for one sample. With a name before it, that line alone is run, so many times.
 *
 * cc -O2 -I tests/clients libibverbs/benches/rate.c -o rate -libverbs && verbsim exec -- ./rate [[write] 20000] */
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { BYTES = 1 << 20, WINDOW = 16, SAMPLES = 15, MAPPINGS = 10000 };

static struct end a, b;
static struct ibv_mr *from, *into;

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void write_of(uint32_t length, int flags)
{
    struct ibv_sge sge = {(uintptr_t)from->addr, length, from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED | flags},
                       *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)into->addr;
    wr.wr.rdma.rkey = into->rkey;
    CHECK(!ibv_post_send(a.qp, &wr, &bad));
    CHECK(complete(&a).status == IBV_WC_SUCCESS);
}

static void write_64(void)
{
    write_of(64, 0);
}

static void write_inline(void)
{
    write_of(64, IBV_SEND_INLINE);
}

static void write_1m(void)
{
    write_of(BYTES, 0);
}

static void send_64(void)
{
    post_recv(&b, 1, 64);
    post_send(&a, 2, 64, 0);
    complete(&b);
    complete(&a);
}

static void sends_64(void)
{
    for (int i = 0; i < WINDOW; ++i)
        post_recv(&b, i, 64);
    for (int i = 0; i < WINDOW; ++i)
        post_send(&a, i, 64, 0);
    for (int i = 0; i < WINDOW; ++i) {
        complete(&b);
        complete(&a);
    }
}

static void message(struct end *from, struct end *to)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(!ibv_req_notify_cq(to->cq, 0));
    post_recv(to, 1, 64);
    post_send(from, 2, 64, 0);
    CHECK(!ibv_get_cq_event(to->channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    complete(to);
    complete(from);
}

static void event(void)
{
    message(&a, &b);
}

static void round_trip(void)
{
    message(&a, &b);
    message(&b, &a);
}

static void empty_poll(void)
{
    struct ibv_wc wc;
    CHECK(!ibv_poll_cq(a.cq, 1, &wc));
}

static void registration(void)
{
    struct ibv_mr *mr = ibv_reg_mr(a.pd, a.memory, LENGTH, ALL_RIGHTS);
    CHECK(mr && !ibv_dereg_mr(mr));
}

/* Gives the process so many mappings more: neighbours with other rights. */
static void map_many(void)
{
    enum { PAGE = 4096 };
    char *first = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(first != MAP_FAILED);
    for (size_t i = 0; i < MAPPINGS; i += 2)
        CHECK(!mprotect(first + i * PAGE, PAGE, PROT_READ | PROT_WRITE));
}

struct line {
    const char *name, *what;
    void (*run)(void);
    /* One round for so many of others, and messages of a round. */
    int fewer, messages;
    void (*before)(void);
};

static const struct line LINES[] = {
    {"write", "write of 64 B", write_64, 1, 1, NULL},
    {"inline", "write of 64 B, inline", write_inline, 1, 1, NULL},
    {"send", "send and receive of 64 B", send_64, 1, 1, NULL},
    {"sends", "the same, 16 at a time", sends_64, WINDOW, WINDOW, NULL},
    {"event", "arm, send, event", event, 1, 1, NULL},
    {"round-trip", "there and back, with events", round_trip, 2, 1, NULL},
    {"poll", "empty poll", empty_poll, 1, 1, NULL},
    {"large", "write of 1 MiB", write_1m, 400, 1, NULL},
    {"register", "register 4 KiB", registration, 10, 1, NULL},
    {"register-many", "the same, 10,000 mappings", registration, 10, 1, map_many},
};
enum { COUNT = sizeof LINES / sizeof *LINES };

static double least(double best, double took)
{
    return best && best < took ? best : took;
}

/* The best of some samples: what else runs on a machine only makes it slower. */
static void measure(const struct line *line, int runs, int samples)
{
    double wall = 0, processor = 0;
    if (!runs)
        runs = 1;
    if (line->before)
        line->before();
    for (int sample = 0; sample < samples; ++sample) {
        double start = now(CLOCK_MONOTONIC), own_start = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < runs; ++i)
            line->run();
        double own = now(CLOCK_THREAD_CPUTIME_ID) - own_start, all = now(CLOCK_MONOTONIC) - start;
        wall = least(wall, all / runs / line->messages);
        processor = least(processor, own / runs / line->messages);
    }
    printf("%-36s %12.1f ns %12.1f ns CPU\n", line->what, wall, processor);
}

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1 && !fclose(file));
    return pages * sysconf(_SC_PAGESIZE);
}

static void make(struct ibv_pd **all, int count)
{
    for (int i = 0; i < count; ++i)
        CHECK((all[i] = ibv_alloc_pd(a.context)));
}

static void measure_memory(const char *what, struct ibv_pd **all, int count)
{
    long before = resident();
    make(all, count);
    printf("%-36s %12.1f B\n", what, (double)(resident() - before) / count);
}

/* Memory of an object, where there are few of its kind and where there are many. */
static void memory_of_objects(void)
{
    enum { EACH = 1000, BETWEEN = 7000, ALL = EACH + BETWEEN + EACH };
    static struct ibv_pd *all[ALL];
    memset(all, 1, sizeof all);
    measure_memory("memory of a PD, of few", all, EACH);
    make(all + EACH, BETWEEN);
    measure_memory("memory of a PD, of many", all + EACH + BETWEEN, EACH);
    for (int i = 0; i < ALL; ++i)
        CHECK(!ibv_dealloc_pd(all[i]));
}

int main(int argc, char **argv)
{
    const char *name = argc > 2 ? argv[1] : NULL;
    int rounds = argc > 1 ? atoi(argv[argc - 1]) : 20000, devices;
    struct ibv_device **list = ibv_get_device_list(&devices);
    CHECK(rounds > 0 && list);
    ibv_free_device_list(list);
    open_end(&a, 0, 0);
    open_end(&b, devices > 1, 0);
    connect_ends(&a, &b);
    char *memory[2];
    for (int i = 0; i < 2; ++i)
        CHECK(!posix_memalign((void **)&memory[i], 4096, BYTES) && memset(memory[i], i, BYTES));
    CHECK((from = ibv_reg_mr(a.pd, memory[0], BYTES, ALL_RIGHTS)));
    CHECK((into = ibv_reg_mr(b.pd, memory[1], BYTES, ALL_RIGHTS)));
    int measured = 0;
    for (const struct line *line = LINES; line < LINES + COUNT; ++line) {
        if (!name)
            measure(line, rounds / line->fewer, SAMPLES);
        else if (!strcmp(name, line->name))
            measure(line, rounds, 1);
        else
            continue;
        ++measured;
    }
    CHECK(measured);
    if (!name) {
        CHECK(!memcmp(memory[0], memory[1], BYTES));
        memory_of_objects();
    }
    CHECK(!ibv_dereg_mr(from) && !ibv_dereg_mr(into));
    free(memory[0]);
    free(memory[1]);
    close_end(&a);
    close_end(&b);
    return 0;
}
