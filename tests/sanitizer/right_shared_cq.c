/* Two queue pairs share a CQ, which tells them apart by their numbers. */
#include "two.h"

enum { MESSAGES = 4 };

/* Another connection of the same ends. */
static void connect_more(struct end *a, struct end *b, struct end *more_a, struct end *more_b)
{
    *more_a = *a;
    *more_b = *b;
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 64}};
    init.send_cq = init.recv_cq = a->cq;
    CHECK((more_a->qp = ibv_create_qp(a->pd, &init)));
    init.send_cq = init.recv_cq = b->cq;
    CHECK((more_b->qp = ibv_create_qp(b->pd, &init)));
    connect_ends(more_a, more_b);
}

int main(void)
{
    struct end a, b, more_a, more_b;
    start_both(&a, &b);
    connect_more(&a, &b, &more_a, &more_b);
    for (int i = 0; i < MESSAGES; ++i) {
        CHECK(!POST_RECV(&b, i, MESSAGE) && !POST_RECV(&more_b, i, MESSAGE));
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
        CHECK(!POST_SEND(&more_a, i, MESSAGE, IBV_SEND_SIGNALED));
    }
    int of_first = 0;
    for (int i = 0; i < 2 * MESSAGES; ++i) {
        expect(&a, IBV_WC_SUCCESS);
        struct ibv_wc wc = complete(&b);
        CHECK(wc.status == IBV_WC_SUCCESS);
        of_first += wc.qp_num == b.qp->qp_num;
    }
    CHECK(of_first == MESSAGES);
    CHECK(!ibv_destroy_qp(more_a.qp) && !ibv_destroy_qp(more_b.qp));
    close_both(&a, &b);
    return 0;
}
