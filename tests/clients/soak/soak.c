/* Makes and destroys objects for a long time, and checks that memory does not grow.
 *
 *   soak CONNECTIONS REGISTRATIONS OBJECTS
 *
 * A connection has two ends in this process, by rdma_cm. It carries a message, and ends; another one is rejected. All their
 * objects are destroyed. A registration is made and removed. OBJECTS is how often one object of each other kind is made and
 * destroyed. Each has a warm-up, so that what the library keeps of destroyed objects is there. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <time.h>
#include <unistd.h>

#include "../bench.h"

enum { WARM_UP = 10000, MOST_GROWTH = 1 << 20, PORT = 7471 };

static struct rdma_event_channel *active, *passive;
static char memory[LENGTH];

static long resident(void)
{
    long pages, size;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Repeats it, and compares the resident memory after the warm-up with that at the end. */
static void soak(const char *name, long count, void (*once)(void))
{
    for (int at = 0; at < WARM_UP; at++)
        once();
    long before = resident();
    double start = now();
    for (long at = 0; at < count; at++)
        once();
    long growth = resident() - before;
    printf("%s: %d and %ld in %.0f s, resident %ld KiB, growth %ld bytes\n", name, WARM_UP, count,
           now() - start, before >> 10, growth);
    fflush(stdout);
    if (growth > MOST_GROWTH) {
        fprintf(stderr, "%s: memory grows by %.1f bytes each\n", name, (double)growth / count);
        exit(1);
    }
}

/* The id of the next event of a channel, which is to be of this type. */
static struct rdma_cm_id *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(channel, &event));
    if (event->event != type) {
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
        exit(1);
    }
    struct rdma_cm_id *id = event->id;
    CHECK(!rdma_ack_cm_event(event));
    return id;
}

/* What an end of a connection has beside its id. */
struct objects {
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
};

static struct objects make(struct rdma_cm_id *id)
{
    struct objects of;
    CHECK((of.pd = ibv_alloc_pd(id->verbs)));
    CHECK((of.channel = ibv_create_comp_channel(id->verbs)));
    CHECK((of.cq = ibv_create_cq(id->verbs, 8, NULL, of.channel, 0)));
    CHECK((of.mr = ibv_reg_mr(of.pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE)));
    struct ibv_qp_init_attr init = {
        .send_cq = of.cq, .recv_cq = of.cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    CHECK(!rdma_create_qp(id, of.pd, &init));
    return of;
}

static void destroy(struct rdma_cm_id *id, struct objects of)
{
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
    CHECK(!ibv_dereg_mr(of.mr));
    CHECK(!ibv_destroy_cq(of.cq));
    CHECK(!ibv_destroy_comp_channel(of.channel));
    CHECK(!ibv_dealloc_pd(of.pd));
}

static void take(struct objects of)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(of.cq, 1, &wc)))
        ;
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
}

static struct sockaddr_in server = {.sin_family = AF_INET};

/* An id with a queue pair that has asked for a connection. */
static struct rdma_cm_id *ask(struct objects *of)
{
    struct rdma_cm_id *id;
    CHECK(!rdma_create_id(active, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&server, 2000));
    next(active, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_resolve_route(id, 2000));
    next(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
    *of = make(id);
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    CHECK(!rdma_connect(id, &param));
    return id;
}

static void connection(void)
{
    struct objects a, b;
    struct rdma_cm_id *id = ask(&a);
    struct rdma_cm_id *peer = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
    b = make(peer);
    struct ibv_sge sge = {(uintptr_t)memory, 64, b.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    CHECK(!ibv_post_recv(peer->qp, &recv, &bad_recv));
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    CHECK(!rdma_accept(peer, &param));
    next(active, RDMA_CM_EVENT_ESTABLISHED);
    next(passive, RDMA_CM_EVENT_ESTABLISHED);
    sge.lkey = a.mr->lkey;
    struct ibv_send_wr send = {.sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    CHECK(!ibv_post_send(id->qp, &send, &bad_send));
    take(a);
    take(b);
    CHECK(!rdma_disconnect(id));
    next(passive, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(peer));
    next(active, RDMA_CM_EVENT_DISCONNECTED);
    destroy(id, a);
    destroy(peer, b);
}

static void rejected(void)
{
    struct objects of;
    struct rdma_cm_id *id = ask(&of);
    struct rdma_cm_id *peer = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(!rdma_reject(peer, NULL, 0));
    CHECK(!rdma_destroy_id(peer));
    next(active, RDMA_CM_EVENT_REJECTED);
    destroy(id, of);
}

static struct end end;

static void registration(void)
{
    struct ibv_mr *mr = ibv_reg_mr(end.pd, memory, LENGTH, ALL_RIGHTS);
    CHECK(mr && !ibv_dereg_mr(mr));
}

static void object_of_each_kind(void)
{
    struct ibv_context *context = ibv_open_device(end.context->device);
    CHECK(context);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_td_init_attr of_td = {0};
    struct ibv_td *td = ibv_alloc_td(context, &of_td);
    CHECK(pd && td);
    struct ibv_parent_domain_init_attr of_parent = {.pd = pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(context, &of_parent);
    CHECK(parent);
    struct ibv_cq_init_attr_ex of_cq = {.cqe = 4};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &of_cq);
    CHECK(cq);
    struct ibv_srq_init_attr of_srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &of_srq);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    CHECK(srq && mw);
    struct ibv_ah_attr path = {
        .grh = {.dgid = gid_of(&end), .hop_limit = 64}, .is_global = 1, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &path);
    CHECK(ah);
    struct ibv_qp_init_attr_ex of_qp = {
        .send_cq = ibv_cq_ex_to_cq(cq),
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .qp_type = IBV_QPT_RC,
        .cap = {4, 4, 1, 1, 0},
        .pd = parent,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(context, &of_qp);
    CHECK(qp);
    struct ibv_qp_ex *batch = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(batch);
    ibv_wr_send(batch);
    ibv_wr_abort(batch);
    struct ibv_alloc_dm_attr of_dm = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(context, &of_dm);
    CHECK(dm);
    struct rdma_cm_id *id;
    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_destroy_id(id));
    CHECK(!ibv_free_dm(dm));
    CHECK(!ibv_destroy_qp(qp));
    CHECK(!ibv_destroy_ah(ah));
    CHECK(!ibv_dealloc_mw(mw));
    CHECK(!ibv_destroy_srq(srq));
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    CHECK(!ibv_dealloc_pd(parent));
    CHECK(!ibv_dealloc_td(td));
    CHECK(!ibv_dealloc_pd(pd));
    CHECK(!ibv_close_device(context));
}

int main(int count, char **arguments)
{
    CHECK(count == 4);
    CHECK((active = rdma_create_event_channel()) && (passive = rdma_create_event_channel()));
    struct rdma_cm_id *listener;
    CHECK(!rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP));
    server.sin_port = htons(PORT);
    server.sin_addr.s_addr = inet_addr("127.0.0.1");
    CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&server));
    CHECK(!rdma_listen(listener, 8));
    open_end(&end, 0, 0);
    long connections = atol(arguments[1]);
    soak("registrations", atol(arguments[2]), registration);
    soak("objects of each kind", atol(arguments[3]), object_of_each_kind);
    soak("rejected connections", connections / 10, rejected);
    soak("connections", connections, connection);
    close_end(&end);
    CHECK(!rdma_destroy_id(listener));
    rdma_destroy_event_channel(active);
    rdma_destroy_event_channel(passive);
    return 0;
}
