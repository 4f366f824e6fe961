/* An end whose completions are iterated over. */
#ifndef ITERATE_H
#define ITERATE_H

#include "two.h"

/* Two connected ends. The second also has this extended CQ, with one completed receive. */
static inline struct ibv_cq_ex *start_with_iteration(struct end *a, struct end *b)
{
    open_both(a, b);
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(b->context, &attr);
    CHECK(cq);
    use_cqs(b, b->cq, ibv_cq_ex_to_cq(cq));
    connect_ends(a, b);
    CHECK(!POST_RECV(b, 1, MESSAGE));
    CHECK(!POST_SEND(a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(a, IBV_WC_SUCCESS);
    return cq;
}

#endif
