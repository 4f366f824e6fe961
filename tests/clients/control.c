/* Every function of verbsim.h: faults, findings, marks, wrong arguments, threads, fork. Where the
 * devices are not simulated, each says so.
 *
 * verbsim exec --names left,right --seed 0 */
#include "bench.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <verbsim.h>

static struct end a, b;

/* Each function does nothing, and needs no device. */
static void check_not_simulated(void)
{
    CHECK(verbsim_inject("[[rule]]\nkind = \"packet\"\neffect = \"drop\"") == -ENOTSUP);
    CHECK(verbsim_drop_packets(NULL, 1) == -ENOTSUP);
    CHECK(verbsim_delay_packets(NULL, 1, 10) == -ENOTSUP);
    CHECK(verbsim_fail_calls(NULL, "ibv_reg_mr", ENOMEM, 1) == -ENOTSUP);
    CHECK(verbsim_fail_completions(NULL, IBV_WC_REM_OP_ERR, 1) == -ENOTSUP);
    CHECK(verbsim_port_down(NULL, 1) == -ENOTSUP);
    CHECK(verbsim_kill_device(NULL) == -ENOTSUP);
    CHECK(verbsim_fired(1) == -ENOTSUP);
    CHECK(verbsim_remove(1) == -ENOTSUP);
    CHECK(verbsim_mark("here") == -ENOTSUP);
    CHECK(verbsim_count_findings(NULL, 0) == -ENOTSUP);
    errno = 0;
    CHECK(!verbsim_findings(0) && errno == ENOTSUP);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void send_one(enum ibv_wc_status status)
{
    post_recv(&b, 1, 8);
    post_send(&a, 2, 8, 0);
    CHECK(complete(&a).status == status);
    if (status == IBV_WC_SUCCESS)
        CHECK(complete(&b).status == status);
}

static void reset(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) && !ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));
}

/* Connects the ends again, which may be in the error state. */
static void reconnect(void)
{
    reset();
    connect_ends(&a, &b);
}

static void check_packets(void)
{
    int64_t lost = verbsim_drop_packets(a.qp, 2);
    CHECK(lost > 0 && verbsim_fired(lost) == 0);
    /* The first try and the second. */
    send_one(IBV_WC_SUCCESS);
    CHECK(verbsim_fired(lost) == 2);
    send_one(IBV_WC_SUCCESS);

    /* It is over, and its count stays, after others too. */
    double start = seconds();
    int64_t late = verbsim_delay_packets(a.qp, 1, 20000);
    CHECK(late > lost && verbsim_fired(lost) == 2);
    send_one(IBV_WC_SUCCESS);
    CHECK(seconds() - start >= 0.02);
    CHECK(verbsim_remove(late) == 1 && verbsim_remove(lost) == 2);
    CHECK(verbsim_fired(lost) == -EINVAL && verbsim_remove(lost) == -EINVAL);

    /* It never arrives. */
    late = verbsim_delay_packets(a.qp, 1, UINT64_MAX);
    send_one(IBV_WC_SUCCESS);
    CHECK(verbsim_remove(late) == 1);

    /* Without a count it has no end, and of another queue pair it is nothing. */
    int64_t others = verbsim_drop_packets(b.qp, 0);
    CHECK(verbsim_remove(others) == 0);
    int64_t all = verbsim_drop_packets(NULL, 0);
    reset();
    to_init(&a);
    to_rtr(&a, gid_of(&b), b.qp->qp_num);
    to_rts(&a, 1, 0);
    post_send(&a, 3, 8, 0);
    CHECK(complete(&a).status == IBV_WC_RETRY_EXC_ERR);
    CHECK(verbsim_remove(all) >= 1);
    reconnect();
}

static void check_calls(void)
{
    int64_t failing = verbsim_fail_calls(b.context, "ibv_alloc_pd", ENOMEM, 2);
    struct ibv_pd *pd = ibv_alloc_pd(a.context);
    CHECK(pd && !ibv_dealloc_pd(pd));
    for (int i = 0; i < 2; i++)
        CHECK(!ibv_alloc_pd(b.context) && errno == ENOMEM);
    CHECK((pd = ibv_alloc_pd(b.context)) && !ibv_dealloc_pd(pd));
    CHECK(verbsim_remove(failing) == 2);
}

static void check_completions(void)
{
    int64_t failing = verbsim_fail_completions(a.qp, IBV_WC_REM_OP_ERR, 1);
    send_one(IBV_WC_REM_OP_ERR);
    CHECK(verbsim_remove(failing) == 1);
    CHECK(complete(&b).status == IBV_WC_SUCCESS);
    reconnect();
    send_one(IBV_WC_SUCCESS);
}

static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
    struct ibv_async_event event;
    CHECK(!ibv_get_async_event(context, &event) && event.event_type == type);
    ibv_ack_async_event(&event);
}

static void check_port(void)
{
    struct ibv_port_attr port;
    int64_t down = verbsim_port_down(a.context, 1);
    CHECK(down > 0 && !ibv_query_port(a.context, 1, &port) && port.state == IBV_PORT_DOWN);
    expect_event(a.context, IBV_EVENT_PORT_ERR);
    CHECK(!ibv_query_port(b.context, 1, &port) && port.state == IBV_PORT_ACTIVE);
    CHECK(verbsim_remove(down) == 1);
    expect_event(a.context, IBV_EVENT_PORT_ACTIVE);
    send_one(IBV_WC_SUCCESS);
}

static void check_rules(void)
{
    int64_t rules = verbsim_inject("[[rule]]\n"
                                   "kind = \"packet\"\n"
                                   "effect = \"duplicate\"\n"
                                   "class = \"send\"\n"
                                   "first = 1\n"
                                   "[[rule]]\n"
                                   "kind = \"limit\"\n"
                                   "limit = \"bytes\"\n"
                                   "value = 8192\n"
                                   "node = 1\n");
    CHECK(rules > 0);
    send_one(IBV_WC_SUCCESS);
    char more[2 * LENGTH];
    CHECK(!ibv_reg_mr(b.pd, more, sizeof more, 0) && errno == ENOMEM);
    CHECK(verbsim_remove(rules) >= 2);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, more, sizeof more, 0);
    CHECK(mr && !ibv_dereg_mr(mr));
}

/* Nothing of a call with a wrong argument is in force. */
static void check_wrong_arguments(void)
{
    CHECK(verbsim_inject(NULL) == -EINVAL);
    CHECK(verbsim_inject("") == -EINVAL);
    CHECK(verbsim_inject("\xff") == -EINVAL);
    CHECK(verbsim_inject("[[rule]]\nkind = \"packet\"\neffect = \"dorp\"") == -EINVAL);
    CHECK(verbsim_inject("[[rule]]\nkind = \"packet\"\neffect = \"drop\"\n"
                         "[[rule]]\nkind = \"port\"\nnode = 7") == -EINVAL);
    CHECK(verbsim_inject("[[rule]]\nkind = \"call\"\nverb = \"ibv_get_device_list\"\nerror = 5") == -EINVAL);
    CHECK(verbsim_delay_packets(a.qp, 1, 0) == -EINVAL);
    CHECK(verbsim_drop_packets(&(struct ibv_qp){.qp_num = 1u << 24}, 1) == -EINVAL);
    CHECK(verbsim_fail_calls(a.context, NULL, ENOMEM, 1) == -EINVAL);
    CHECK(verbsim_fail_calls(a.context, "ibv_nothing", ENOMEM, 1) == -EINVAL);
    CHECK(verbsim_fail_calls(a.context, "ibv_alloc_pd", 0, 1) == -EINVAL);
    CHECK(verbsim_fail_calls(a.context, "ibv_alloc_pd", -ENOMEM, 1) == -EINVAL);
    CHECK(verbsim_fail_completions(a.qp, IBV_WC_SUCCESS, 1) == -EINVAL);
    CHECK(verbsim_port_down(NULL, 1) == -EINVAL);
    CHECK(verbsim_port_down(a.context, 0) == -EINVAL);
    CHECK(verbsim_port_down(a.context, 2) == -EINVAL);
    CHECK(verbsim_port_down(a.context, 256) == -EINVAL);
    CHECK(verbsim_kill_device(NULL) == -EINVAL);
    CHECK(verbsim_fired(0) == -EINVAL && verbsim_remove(-1) == -EINVAL);
    CHECK(verbsim_mark(NULL) == -EINVAL);
    CHECK(verbsim_count_findings("fatal", 0) == -EINVAL && verbsim_count_findings(NULL, 1000) == -EINVAL);
    errno = 0;
    CHECK(!verbsim_findings(-1) && errno == EINVAL);
    struct ibv_device device = {.name = "nowhere"};
    struct ibv_context context = {.device = &device};
    CHECK(verbsim_kill_device(&context) == -ENODEV && verbsim_fail_calls(&context, "ibv_alloc_pd", 5, 1) == -ENODEV);
    send_one(IBV_WC_SUCCESS);
}

/* Writes where the peer has no memory. */
static void make_mistake(void)
{
    struct ibv_sge sge = {(uintptr_t)a.memory, 8, a.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
    wr.wr.rdma.rkey = 0x1234;
    CHECK(!ibv_post_send(a.qp, &wr, &bad) && complete(&a).status == IBV_WC_REM_ACCESS_ERR);
    reconnect();
}

static void check_findings(void)
{
    /* A fault that was asked for is no error, nor is what the program still has. */
    CHECK(verbsim_count_findings("error", 0) == 0);
    int64_t before = verbsim_mark("before the mistake");
    CHECK(before > 0 && verbsim_count_findings(NULL, before) == 0);
    char *none = verbsim_findings(before);
    CHECK(none && !*none);
    free(none);

    make_mistake();
    /* The peer has not read the event that it got. */
    CHECK(verbsim_count_findings("error", before) == 1 && verbsim_count_findings("warning", before) == 1);
    CHECK(verbsim_count_findings(NULL, before) == 2 && verbsim_count_findings("VS-EVT-05", before) == 1);
    CHECK(verbsim_count_findings("VS-KEY-01", 0) == 1 && verbsim_count_findings("VS-KEY-02", 0) == 0);
    char *found = verbsim_findings(before);
    CHECK(found && strstr(found, "\"class\":\"VS-KEY-01\"") && strstr(found, "\"device\":\"left\""));
    CHECK(strstr(found, "no region has the rkey 0x1234") && strstr(found, "\"place\":\""));
    CHECK(strstr(found, "}\n{") && !strcmp(found + strlen(found) - 2, "}\n"));
    free(found);

    int64_t after = verbsim_mark("after the mistake");
    CHECK(after == before + 1 && verbsim_count_findings(NULL, after) == 0);
    make_mistake();
    CHECK(verbsim_count_findings("VS-KEY-01", after) == 1 && verbsim_count_findings("VS-KEY-01", before) == 2);
    expect_event(b.context, IBV_EVENT_QP_ACCESS_ERR);
    expect_event(b.context, IBV_EVENT_QP_ACCESS_ERR);
    CHECK(verbsim_count_findings("VS-EVT-05", 0) == 0);
}

enum { THREADS = 4, ROUNDS = 50 };

static void *use_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t fault = verbsim_fail_calls(NULL, "ibv_create_ah", EIO, 1);
        CHECK(fault > 0 && verbsim_fired(fault) == 0);
        int64_t mark = verbsim_mark("round\nand round");
        CHECK(mark > 0 && verbsim_count_findings("error", mark) == 0);
        free(verbsim_findings(0));
        CHECK(verbsim_remove(fault) == 0);
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, use_all, NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

/* A child has neither the faults nor the findings of its parent. */
static void check_fork(void)
{
    int64_t fault = verbsim_fail_calls(NULL, "ibv_open_device", EIO, 0), mark = verbsim_mark("fork");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(verbsim_is_simulated() && verbsim_count_findings(NULL, 0) == 0);
        CHECK(verbsim_fired(fault) == -EINVAL && verbsim_remove(fault) == -EINVAL);
        struct ibv_pd none = {.context = NULL};
        CHECK(ibv_dealloc_pd(&none) == EINVAL);
        CHECK(verbsim_count_findings("VS-CALL-01", mark) == 1 && verbsim_count_findings(NULL, 0) == 1);
        CHECK(verbsim_fail_calls(NULL, "ibv_alloc_pd", EIO, 1) > fault && verbsim_mark("child") == mark + 1);
        /* What threads of the parent had is no leak of the child's. */
        execlp("true", "true", NULL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(verbsim_count_findings(NULL, mark) == 0 && verbsim_remove(fault) == 0);
}

/* Each context of the device learns of it. */
static void check_death(void)
{
    struct ibv_context *second = ibv_open_device(b.context->device);
    CHECK(second && verbsim_kill_device(second) == 0);
    expect_event(b.context, IBV_EVENT_DEVICE_FATAL);
    expect_event(second, IBV_EVENT_DEVICE_FATAL);
    CHECK(!ibv_alloc_pd(b.context) && errno == EIO);
    CHECK(verbsim_kill_device(b.context) == -EIO);
    CHECK(!ibv_close_device(second));
    struct ibv_pd *pd = ibv_alloc_pd(a.context);
    CHECK(pd && !ibv_dealloc_pd(pd));
}

int main(void)
{
    if (!verbsim_is_simulated()) {
        check_not_simulated();
        return 0;
    }
    /* Before the first use of a device there is nothing to find. */
    CHECK(verbsim_count_findings(NULL, 0) == 0 && verbsim_mark("start") == 1);
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    check_packets();
    check_calls();
    check_completions();
    check_port();
    check_rules();
    check_wrong_arguments();
    check_findings();
    check_threads();
#ifndef __SANITIZE_ADDRESS__
    /* gcc's address sanitizer does not free the locks of its allocator in a child. */
    check_fork();
#endif
    check_death();
    close_end(&a);
    close_end(&b);
    return 0;
}
