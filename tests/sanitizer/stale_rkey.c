/* A window's key is used once more after a message has invalidated it. */
#include "two.h"

/* The key of a window over the end's memory. */
static uint32_t bind_window(struct end *end, struct ibv_mr *mr, struct ibv_mw *mw)
{
    uint32_t rkey = ibv_inc_rkey(mw->rkey);
    struct ibv_mw_bind_info info = {mr, (uintptr_t)end->memory, LENGTH, IBV_ACCESS_REMOTE_WRITE};
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = info}},
                       *bad;
    CHECK(!ibv_post_send(end->qp, &wr, &bad));
    expect(end, IBV_WC_SUCCESS);
    mw->rkey = rkey;
    return rkey;
}

static void send_invalidating(struct end *from, struct end *to, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV,
                             .send_flags = IBV_SEND_SIGNALED,
                             .invalidate_rkey = rkey},
                       *bad;
    CHECK(!POST_RECV(to, 1, MESSAGE));
    CHECK(!ibv_post_send(from->qp, &wr, &bad));
    expect(from, IBV_WC_SUCCESS);
    expect(to, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, b.memory, LENGTH, ALL_RIGHTS | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    CHECK(mr && mw);
    uint32_t rkey = bind_window(&b, mr, mw);
    CHECK(!POST_WRITE(&a, 2, MESSAGE, IBV_SEND_SIGNALED, b.memory, rkey));
    expect(&a, IBV_WC_SUCCESS);

    send_invalidating(&a, &b, rkey);
    if (!wrong)
        rkey = bind_window(&b, mr, mw);
    CHECK(!POST_WRITE(&a, 3, MESSAGE, IBV_SEND_SIGNALED, b.memory, rkey)); /* HERE */
    expect(&a, wrong ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
    CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
    close_both(&a, &b);
    return 0;
}
