/* A thread iterates over a CQ, and another polls it: each waits for its turn. */
#include <pthread.h>
#include <stdatomic.h>

#include "iterate.h"

enum { MESSAGES = 100 };

static atomic_int taken;

static void *poll_too(void *cq)
{
    struct ibv_wc wc;
    while (taken < MESSAGES) {
        int count = ibv_poll_cq(cq, 1, &wc);
        CHECK(count >= 0);
        taken += count;
    }
    return NULL;
}

static void iterate(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    if (ibv_start_poll(cq, &attr))
        return;
    do {
        CHECK(cq->status == IBV_WC_SUCCESS && ibv_wc_read_byte_len(cq) == MESSAGE);
        ++taken;
    } while (!ibv_next_poll(cq));
    ibv_end_poll(cq);
}

int main(void)
{
    struct end a, b;
    struct ibv_cq_ex *cq = start_with_iteration(&a, &b);
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, poll_too, ibv_cq_ex_to_cq(cq)));
    for (int i = 1; i < MESSAGES; ++i) {
        CHECK(!POST_RECV(&b, i, MESSAGE));
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
        expect(&a, IBV_WC_SUCCESS);
        iterate(cq);
    }
    while (taken < MESSAGES)
        iterate(cq);
    CHECK(!pthread_join(other, NULL));

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
