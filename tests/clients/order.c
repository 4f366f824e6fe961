/* Queues that share a CQ have no order among them: with profile adversarial an answer completes before the send that it
 * answers, and sends of two queue pairs in another order than they were posted, though each queue keeps its own.
 *
 * verbsim exec --profile adversarial --fabric private --seed 1 */
#include "bench.h"

enum { ROUNDS = 200, FIRST = 1, SECOND = 2, REQUEST = 3, ANSWER = 4 };

static uint64_t next(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int count;
    while (!(count = ibv_poll_cq(cq, 1, &wc)))
        ;
    CHECK(count == 1 && wc.status == IBV_WC_SUCCESS);
    return wc.wr_id;
}

/* Takes both completions, and returns whether the second came first. */
static int is_second_first(struct end *end)
{
    uint64_t one = next(end->cq), other = next(end->cq);
    CHECK(one + other == FIRST + SECOND && one != other);
    return one == SECOND;
}

/* Another queue pair of the end, on the same CQ. */
static struct end sibling(struct end *end)
{
    struct end other = *end;
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 64}};
    CHECK((other.qp = ibv_create_qp(end->pd, &init)));
    return other;
}

int main(void)
{
    struct end a, b;
    int answers = 0, sends = 0;
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);
    connect_ends(&a, &b);
    struct end a2 = sibling(&a), b2 = sibling(&b);
    connect_ends(&a2, &b2);
    for (int round = 0; round < ROUNDS; round++) {
        post_recv(&a, SECOND, 64);
        post_recv(&b, REQUEST, 64);
        post_send(&a, FIRST, 64, 0);
        CHECK(next(b.cq) == REQUEST);
        post_send(&b, ANSWER, 64, 0);
        answers += is_second_first(&a);
        CHECK(next(b.cq) == ANSWER);

        post_recv(&b, REQUEST, 64);
        post_recv(&b2, REQUEST, 64);
        post_send(&a, FIRST, 64, 0);
        post_send(&a2, SECOND, 64, 0);
        sends += is_second_first(&a);
        CHECK(next(b.cq) == REQUEST && next(b.cq) == REQUEST);
    }
    printf("%d answers came before their sends, and %d sends before an earlier one\n", answers, sends);
    CHECK(0 < answers && answers < ROUNDS && 0 < sends && sends < ROUNDS);
    CHECK(!ibv_destroy_qp(a2.qp) && !ibv_destroy_qp(b2.qp));
    close_end(&a);
    close_end(&b);
    return 0;
}
