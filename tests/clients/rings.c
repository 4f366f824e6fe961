/* Lists of requests that have no end, or are far longer than the queue: ENOMEM at the first that does not
 * fit, unless one before it is wrong. */
#include <sys/resource.h>

#include "bench.h"

enum { DEPTH = 16, LONG = 1000000 };

static struct ibv_send_wr *sends, *bad_send;
static struct ibv_recv_wr *recvs, *bad_recv;

/* Chains the first so many; the last goes on with this one. */
static void chain(int count, int on)
{
    for (int i = 0; i < count; ++i) {
        int next = i + 1 < count ? i + 1 : on;
        sends[i] = (struct ibv_send_wr){
            .wr_id = i, .opcode = IBV_WR_SEND, .next = next < 0 ? NULL : &sends[next]};
        recvs[i] = (struct ibv_recv_wr){.wr_id = i, .next = next < 0 ? NULL : &recvs[next]};
    }
}

static void expect_send(struct end *end, int error, int at)
{
    CHECK(ibv_post_send(end->qp, sends, &bad_send) == error && bad_send == &sends[at]);
}

static void expect_recv(struct end *end, int error, int at)
{
    int got = end->srq ? ibv_post_srq_recv(end->srq, recvs, &bad_recv)
                       : ibv_post_recv(end->qp, recvs, &bad_recv);
    CHECK(got == error && bad_recv == &recvs[at]);
}

/* Empties the queues. */
static void reset(struct end *a, struct end *b)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(a->qp, &attr, IBV_QP_STATE) && !ibv_modify_qp(b->qp, &attr, IBV_QP_STATE));
    connect_ends(a, b);
}

int main(void)
{
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit = {4ul << 30, 4ul << 30};
    CHECK(!setrlimit(RLIMIT_AS, &limit));
#endif
    struct end a, b, shared;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    open_end(&shared, 0, DEPTH);
    connect_ends(&a, &b);
    CHECK((sends = calloc(LONG, sizeof *sends)) && (recvs = calloc(LONG, sizeof *recvs)));

    /* Rings of one and of several, and one that is entered behind others. Nobody receives. */
    static const struct {
        int count, on, bad;
    } lists[] = {{1, 0, 0}, {3, 0, DEPTH % 3}, {5, 4, 4}, {DEPTH, 0, 0}, {LONG, -1, DEPTH}, {LONG, 0, DEPTH}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
        chain(lists[i].count, lists[i].on);
        expect_send(&a, ENOMEM, lists[i].bad);
        expect_recv(&a, ENOMEM, lists[i].bad);
        reset(&a, &b);
    }

    /* Those that fit are posted, and those before them count. */
    chain(10, -1);
    CHECK(!ibv_post_send(a.qp, sends, &bad_send) && !ibv_post_recv(a.qp, recvs, &bad_recv));
    expect_send(&a, ENOMEM, DEPTH - 10);
    expect_recv(&a, ENOMEM, DEPTH - 10);
    reset(&a, &b);
    chain(DEPTH, -1);
    for (int i = 0; i < DEPTH; ++i)
        sends[i].send_flags = IBV_SEND_SIGNALED;
    CHECK(!ibv_post_recv(b.qp, recvs, &bad_recv));
    sends[DEPTH - 1].next = sends;
    expect_send(&a, ENOMEM, 0);
    for (int i = 0; i < DEPTH; ++i)
        CHECK(complete(&b).wr_id == (uint64_t)i && complete(&a).wr_id == (uint64_t)i);

    /* What is wrong before that is said first, and what is inline is copied no more often. */
    chain(4, 0);
    sends[2].num_sge = 2;
    recvs[2].num_sge = 2;
    expect_send(&a, EINVAL, 2);
    expect_recv(&a, EINVAL, 2);
    reset(&a, &b);
    sends[2].opcode = 99;
    expect_send(&a, EINVAL, 2);
    reset(&a, &b);
    struct ibv_sge sge = {(uintptr_t)a.memory, 64, 0};
    chain(1, 0);
    sends[0].sg_list = &sge;
    sends[0].num_sge = 1;
    sends[0].send_flags = IBV_SEND_INLINE;
    expect_send(&a, ENOMEM, 0);

    /* A queue that grows takes more. */
    struct ibv_srq_attr more = {.max_wr = 4 * DEPTH};
    chain(LONG, 0);
    CHECK(!ibv_modify_srq(shared.srq, &more, IBV_SRQ_MAX_WR));
    expect_recv(&shared, ENOMEM, 4 * DEPTH);

    free(sends);
    free(recvs);
    close_end(&a);
    close_end(&b);
    close_end(&shared);
    return 0;
}
