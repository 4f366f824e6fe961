/* Enhanced connection establishment between two processes, by rdma_cm: queue pairs that librdmacm
 * makes, and queue pairs of the program's own in the order of the manual pages. */
#define _GNU_SOURCE
#include "bench.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_MS = 5000, VENDOR_OPTION = 35, BYTES = 2000 };

/* How a connection is made. */
enum way { BY_LIBRARY, BY_PROGRAM, REFUSED, WAYS };

struct side {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char memory[2][BYTES];
};

static struct rdma_cm_event *next(struct side *side, enum rdma_cm_event_type kind, int status)
{
    struct rdma_cm_event *event;
    CHECK(!rdma_get_cm_event(side->channel, &event));
    if (event->event != kind)
        fprintf(stderr, "%s, not %s\n", rdma_event_str(event->event), rdma_event_str(kind));
    CHECK(event->event == kind && event->status == status);
    return event;
}

static void expect(struct side *side, enum rdma_cm_event_type kind, int status)
{
    CHECK(!rdma_ack_cm_event(next(side, kind, status)));
}

static struct ibv_ece ece_of(struct ibv_qp *qp)
{
    struct ibv_ece ece = {1, 1, 1};
    CHECK(!ibv_query_ece(qp, &ece) && ece.vendor_id && !ece.comp_mask);
    return ece;
}

/* A queue pair of the id, or of the program. */
static void make_qp(struct side *side, enum way way)
{
    struct rdma_cm_id *id = side->id;
    CHECK((side->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0)));
    CHECK((side->mr = ibv_reg_mr(id->pd, side->memory, sizeof side->memory, ALL_RIGHTS)));
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq, .recv_cq = side->cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    if (way == BY_LIBRARY) {
        CHECK(!rdma_create_qp(id, NULL, &init));
        side->qp = id->qp;
        struct ibv_ece ece = {1, 1, 0};
        CHECK(rdma_set_local_ece(id, &ece) == -1 && errno == EINVAL);
        CHECK(rdma_get_remote_ece(id, &ece) == -1 && errno == EINVAL);
    } else {
        CHECK((side->qp = ibv_create_qp(id->pd, &init)));
    }
}

static void to_state(struct side *side, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    CHECK(!rdma_init_qp_attr(side->id, &attr, &mask));
    CHECK(!ibv_modify_qp(side->qp, &attr, mask));
}

static void to_rts_from_init(struct side *side)
{
    to_state(side, IBV_QPS_RTR);
    to_state(side, IBV_QPS_RTS);
}

static struct ibv_wc completion(struct side *side)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(side->cq, 1, &wc)))
        ;
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
    return wc;
}

static void fill(unsigned char *bytes, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; ++i)
        bytes[i] = (unsigned char)(i * 7 + seed);
}

static void post_receive(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)side->memory[1], BYTES, side->mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(side->qp, &receive, &bad));
}

/* Both send; every byte of the other's message arrives. */
static void exchange(struct side *side, unsigned own, unsigned other)
{
    fill(side->memory[0], own);
    struct ibv_sge sge = {(uintptr_t)side->memory[0], BYTES, side->mr->lkey};
    struct ibv_send_wr send = {.wr_id = 2,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    CHECK(!ibv_post_send(side->qp, &send, &bad));
    CHECK(completion(side).wr_id + completion(side).wr_id == 3);
    unsigned char expected[BYTES];
    fill(expected, other);
    CHECK(!memcmp(side->memory[1], expected, BYTES));
}

static void end(struct side *side)
{
    if (side->id->qp)
        rdma_destroy_qp(side->id);
    else if (side->qp)
        CHECK(!ibv_destroy_qp(side->qp));
    if (side->qp)
        CHECK(!ibv_dereg_mr(side->mr) && !ibv_destroy_cq(side->cq));
    CHECK(!rdma_destroy_id(side->id));
    side->qp = NULL;
}

/* The server of a queue pair of its own takes one option less than the client has. */
static void answer(struct side *side, struct ibv_ece *asked)
{
    struct ibv_ece own = ece_of(side->qp);
    CHECK(asked->vendor_id == own.vendor_id && asked->options == own.options);
    asked->options &= asked->options - 1;
    struct ibv_ece given = *asked;
    CHECK(!ibv_set_ece(side->qp, asked));
    CHECK(asked->options == given.options && !ece_of(side->qp).options);
    to_state(side, IBV_QPS_INIT);
    own = ece_of(side->qp);
    CHECK(own.options == given.options);
    post_receive(side);
    to_rts_from_init(side);
    CHECK(!rdma_set_local_ece(side->id, &own));
}

static void serve(int port)
{
    struct side listener = {.channel = rdma_create_event_channel()}, side = listener;
    struct sockaddr_in any = {.sin_family = AF_INET};
    CHECK(!rdma_create_id(listener.channel, &listener.id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener.id, (struct sockaddr *)&any) && !rdma_listen(listener.id, 4));
    uint16_t at = rdma_get_src_port(listener.id);
    CHECK(write(port, &at, sizeof at) == sizeof at);
    for (enum way way = 0; way < WAYS; ++way) {
        struct rdma_cm_event *event = next(&side, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
        side.id = event->id;
        CHECK(!rdma_ack_cm_event(event));
        struct ibv_ece asked = {1, 1, 1};
        CHECK(!rdma_get_remote_ece(side.id, &asked) && !asked.comp_mask);
        if (way == REFUSED) {
            CHECK(asked.vendor_id == 0x123456 && asked.options == 0x89abcdef);
            CHECK(!rdma_reject_ece(side.id, "no", 2));
            end(&side);
            continue;
        }
        make_qp(&side, way);
        struct rdma_conn_param param = {.qp_num = side.qp->qp_num, .retry_count = 7, .rnr_retry_count = 7};
        if (way == BY_PROGRAM)
            answer(&side, &asked);
        else
            post_receive(&side);
        CHECK(!rdma_accept(side.id, &param));
        expect(&side, RDMA_CM_EVENT_ESTABLISHED, 0);
        exchange(&side, 3 + way, 100 + way);
        expect(&side, RDMA_CM_EVENT_DISCONNECTED, 0);
        end(&side);
    }
    CHECK(!rdma_destroy_id(listener.id));
    rdma_destroy_event_channel(listener.channel);
}

static void route(struct side *side, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = port};
    CHECK(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1);
    CHECK(!rdma_create_id(side->channel, &side->id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(side->id, NULL, (struct sockaddr *)&to, TIMEOUT_MS));
    expect(side, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    CHECK(!rdma_resolve_route(side->id, TIMEOUT_MS));
    expect(side, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static void ask(uint16_t port, enum way way)
{
    struct side side = {.channel = rdma_create_event_channel()};
    route(&side, port);
    struct rdma_conn_param param = {.qp_num = 0x4321, .retry_count = 7, .rnr_retry_count = 7};
    struct ibv_ece own = {0x123456, 0x89abcdef, 0};
    if (way != REFUSED) {
        make_qp(&side, way);
        param.qp_num = side.qp->qp_num;
        own = ece_of(side.qp);
    }
    if (way != BY_LIBRARY)
        CHECK(!rdma_set_local_ece(side.id, &own));
    if (way == BY_LIBRARY)
        post_receive(&side);
    CHECK(!rdma_connect(side.id, &param));
    if (way == REFUSED) {
        struct rdma_cm_event *event = next(&side, RDMA_CM_EVENT_REJECTED, VENDOR_OPTION);
        CHECK(!memcmp(event->param.conn.private_data, "no", 2) && !rdma_ack_cm_event(event));
        end(&side);
        return rdma_destroy_event_channel(side.channel);
    }
    if (way == BY_PROGRAM) {
        expect(&side, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        struct ibv_ece taken;
        CHECK(!rdma_get_remote_ece(side.id, &taken) && taken.vendor_id == own.vendor_id);
        CHECK(taken.options == (own.options & (own.options - 1)));
        CHECK(!ibv_set_ece(side.qp, &taken));
        to_state(&side, IBV_QPS_INIT);
        post_receive(&side);
        to_rts_from_init(&side);
        CHECK(ece_of(side.qp).options == taken.options);
        CHECK(!rdma_establish(side.id));
    } else {
        expect(&side, RDMA_CM_EVENT_ESTABLISHED, 0);
        CHECK(ece_of(side.qp).options == own.options);
    }
    exchange(&side, 100 + way, 3 + way);
    CHECK(!rdma_disconnect(side.id));
    expect(&side, RDMA_CM_EVENT_DISCONNECTED, 0);
    end(&side);
    rdma_destroy_event_channel(side.channel);
}

int main(void)
{
    int port[2], status;
    CHECK(!pipe(port));
    pid_t server = fork();
    CHECK(server >= 0);
    if (!server) {
        serve(port[1]);
        exit(0);
    }
    uint16_t at;
    CHECK(read(port[0], &at, sizeof at) == sizeof at);
    for (enum way way = 0; way < WAYS; ++way)
        ask(at, way);
    CHECK(waitpid(server, &status, 0) == server && !status);
    return 0;
}
