/* Ends a connection by ERR, takes all receives back, and connects again. */
#include "two.h"

enum { RECEIVES = 4 };

static void exchange(struct end *from, struct end *to)
{
    CHECK(!POST_SEND(from, 1, MESSAGE, IBV_SEND_SIGNALED));
    expect(from, IBV_WC_SUCCESS);
    expect(to, IBV_WC_SUCCESS);
}

static void take_back(struct end *end, int receives)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};
    CHECK(!ibv_modify_qp(end->qp, &error, IBV_QP_STATE));
    /* The last work that it has: all that is before it has come back. */
    CHECK(!POST_SEND(end, RECEIVES, MESSAGE, IBV_SEND_SIGNALED));
    for (int i = 0; i < receives + 1; ++i)
        expect(end, IBV_WC_WR_FLUSH_ERR);
    is_empty(end->cq);
    CHECK(!ibv_modify_qp(end->qp, &reset, IBV_QP_STATE));
}

int main(void)
{
    struct end a, b;
    start_both(&a, &b);
    for (int i = 0; i < RECEIVES; ++i)
        CHECK(!POST_RECV(&b, i, MESSAGE));
    exchange(&a, &b);
    take_back(&b, RECEIVES - 1);
    take_back(&a, 0);

    connect_ends(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    exchange(&a, &b);
    close_both(&a, &b);
    return 0;
}
