/* Extended CQs: iterations and their fields (CQ-CREATE-14 to 16), which threads take in turn;
 * moderation. */
#include <pthread.h>

#include "bench.h"

enum { ROUNDS = 10, BATCH = 16 };

static const uint64_t FIELDS = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;

/* Puts an extended CQ in the place of the plain one, and a queue pair on it. */
static struct ibv_cq_ex *extend(struct end *end)
{
    CHECK(!ibv_destroy_qp(end->qp));
    CHECK(!ibv_destroy_cq(end->cq));
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 64, .cq_context = end, .channel = end->channel, .wc_flags = FIELDS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(end->context, &attr);
    CHECK(cq && cq->cqe >= 64);
    end->cq = ibv_cq_ex_to_cq(cq);
    struct ibv_qp_init_attr_ex init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 1, 1, 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = end->pd,
    };
    CHECK((end->qp = ibv_create_qp_ex(end->context, &init)));
    return cq;
}

static void refused(struct end *end)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN};
    CHECK(!ibv_create_cq_ex(end->context, &attr) && errno == EOPNOTSUPP);
    attr.wc_flags = 0;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD << 1;
    CHECK(!ibv_create_cq_ex(end->context, &attr) && errno == EOPNOTSUPP);
    attr.comp_mask = 0;
    attr.cqe = -1;
    CHECK(!ibv_create_cq_ex(end->context, &attr) && errno == EINVAL);
}

static void moderate(struct end *end)
{
    struct ibv_device_attr_ex device;
    CHECK(!ibv_query_device_ex(end->context, NULL, &device));
    CHECK(device.completion_timestamp_mask && device.hca_core_clock);
    CHECK(device.cq_mod_caps.max_cq_count && device.cq_mod_caps.max_cq_period);
    CHECK(device.phys_port_cnt_ex == 1);
    struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
    CHECK(!ibv_query_rt_values_ex(end->context, &before));
    do
        CHECK(!ibv_query_rt_values_ex(end->context, &after));
    while (after.raw_clock.tv_nsec == before.raw_clock.tv_nsec);
    CHECK(after.raw_clock.tv_nsec > before.raw_clock.tv_nsec && !after.raw_clock.tv_sec);
    after.comp_mask = IBV_VALUES_MASK_RESERVED;
    CHECK(ibv_query_rt_values_ex(end->context, &after) == EINVAL);
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {2, 100}};
    CHECK(!ibv_modify_cq(end->cq, &attr));
    attr.moderate.cq_count = attr.moderate.cq_period = 0;
    CHECK(!ibv_modify_cq(end->cq, &attr));
    attr.attr_mask = IBV_CQ_ATTR_RESERVED;
    CHECK(ibv_modify_cq(end->cq, &attr) == EINVAL);
}

static void iterate(struct end *a, struct end *b, struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr none = {0}, unknown = {.comp_mask = 1};
    CHECK(ibv_start_poll(cq, &none) == ENOENT);
    CHECK(ibv_start_poll(cq, &unknown) == EINVAL);
    for (uint64_t number = 0; number < 3; ++number) {
        post_recv(b, number, 8 * number);
        post_send(a, number, 8 * number, 0);
    }
    CHECK(!ibv_start_poll(cq, &none));
    uint64_t before = 0;
    for (uint64_t number = 0; number < 3; ++number) {
        CHECK(cq->wr_id == number && cq->status == IBV_WC_SUCCESS);
        CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV && ibv_wc_read_wc_flags(cq) == 0);
        CHECK(ibv_wc_read_byte_len(cq) == 8 * number);
        CHECK(ibv_wc_read_qp_num(cq) == b->qp->qp_num);
        CHECK(ibv_wc_read_completion_ts(cq) >= before);
        before = ibv_wc_read_completion_ts(cq);
        /* What would wait for this thread itself is refused. */
        struct ibv_wc wc;
        CHECK(ibv_poll_cq(b->cq, 1, &wc) < 0);
        CHECK(ibv_destroy_qp(b->qp) == EINVAL);
        CHECK(ibv_next_poll(cq) == (number < 2 ? 0 : ENOENT));
    }
    CHECK(before > 0);
    ibv_end_poll(cq);
    for (int number = 0; number < 3; ++number)
        CHECK(complete(a).status == IBV_WC_SUCCESS);
}

struct work {
    struct ibv_cq_ex *cq;
    /* How often each number was seen. */
    unsigned seen[BATCH];
    unsigned *left;
};

/* Takes completions by iterations and one by one until none is left. */
static void *take(void *of)
{
    struct work *work = of;
    while (__atomic_load_n(work->left, __ATOMIC_SEQ_CST)) {
        struct ibv_poll_cq_attr attr = {0};
        int result = ibv_start_poll(work->cq, &attr);
        CHECK(!result || result == ENOENT);
        if (result)
            continue;
        do {
            work->seen[work->cq->wr_id] += 1;
            CHECK(work->cq->status == IBV_WC_SUCCESS);
            __atomic_fetch_sub(work->left, 1, __ATOMIC_SEQ_CST);
        } while (!ibv_next_poll(work->cq));
        ibv_end_poll(work->cq);
        struct ibv_wc wc;
        int count = ibv_poll_cq(ibv_cq_ex_to_cq(work->cq), 1, &wc);
        CHECK(count >= 0);
        if (count) {
            work->seen[wc.wr_id] += 1;
            __atomic_fetch_sub(work->left, 1, __ATOMIC_SEQ_CST);
        }
    }
    return NULL;
}

/* Each completion comes to one of two threads. */
static void in_turn(struct end *a, struct end *b, struct ibv_cq_ex *cq)
{
    for (int round = 0; round < ROUNDS; ++round) {
        unsigned left = BATCH;
        struct work work[2] = {{.cq = cq, .left = &left}, {.cq = cq, .left = &left}};
        pthread_t threads[2];
        for (int number = 0; number < 2; ++number)
            CHECK(!pthread_create(&threads[number], NULL, take, &work[number]));
        for (int number = 0; number < BATCH; ++number) {
            post_recv(b, number, 8);
            post_send(a, number, 8, 0);
        }
        for (int number = 0; number < 2; ++number)
            CHECK(!pthread_join(threads[number], NULL));
        for (int number = 0; number < BATCH; ++number) {
            CHECK(work[0].seen[number] + work[1].seen[number] == 1);
            CHECK(complete(a).status == IBV_WC_SUCCESS);
        }
    }
}

int main(void)
{
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    refused(&b);
    struct ibv_cq_ex *cq = extend(&b);
    connect_ends(&a, &b);
    moderate(&b);
    iterate(&a, &b, cq);
    in_turn(&a, &b, cq);
    close_end(&a);
    close_end(&b);
    return 0;
}
