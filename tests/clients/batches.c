/* Batches whose queue pair goes, or that another thread meddles with: errors, and nobody hangs. */
#include <pthread.h>

#include "bench.h"

static struct end a, b;

static struct ibv_qp *make(void)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = a.cq,
        .recv_cq = a.cq,
        .cap = {4, 4, 1, 1, 0},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = a.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(a.context, &init);
    CHECK(qp);
    return qp;
}

static void add(struct ibv_qp_ex *qp, uint64_t wr_id)
{
    qp->wr_id = wr_id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qp);
    ibv_wr_set_sge(qp, a.mr->lkey, (uintptr_t)a.memory, 8);
}

static void run(void *(*body)(void *), void *with)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, body, with) && !pthread_join(thread, NULL));
}

static void *start(void *qp)
{
    ibv_wr_start(ibv_qp_to_qp_ex(qp));
    return NULL;
}

static void *start_and_complete(void *qp)
{
    start(qp);
    CHECK(ibv_wr_complete(ibv_qp_to_qp_ex(qp)) == EINVAL);
    return NULL;
}

static void *destroy(void *qp)
{
    CHECK(!ibv_destroy_qp(qp));
    return NULL;
}

static void *meddle(void *qp)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    add(ex, 666);
    CHECK(ibv_wr_complete(ex) == EINVAL);
    ibv_wr_abort(ex);
    return NULL;
}

int main(void)
{
    open_end(&a, 0, 0);
    open_end(&b, 1, 0);

    /* A queue pair goes within a batch, by the thread that builds it or by another. */
    void *(*const ways[])(void *) = {NULL, destroy};
    for (int i = 0; i < 2; ++i) {
        struct ibv_qp *qp = make();
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
        ibv_wr_start(ex);
        add(ex, 1);
        pthread_t waits;
        CHECK(!pthread_create(&waits, NULL, start_and_complete, qp));
        if (ways[i])
            run(ways[i], qp);
        else
            destroy(qp);
        CHECK(!pthread_join(waits, NULL));
        add(ex, 2);
        CHECK(ibv_wr_complete(ex) == EINVAL);
        ibv_wr_start(ex);
        add(ex, 3);
        CHECK(ibv_wr_complete(ex) == EINVAL);
        ibv_wr_start(ex);
        ibv_wr_abort(ex);
    }

    /* What another thread does with a batch is refused, and does not change it. */
    struct ibv_qp *plain = a.qp;
    a.qp = make();
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a.qp);
    connect_ends(&a, &b);
    post_recv(&b, 1, 8);
    post_recv(&b, 2, 8);
    ibv_wr_start(ex);
    add(ex, 1);
    run(meddle, a.qp);
    CHECK(!ibv_wr_complete(ex));
    CHECK(complete(&a).wr_id == 1 && complete(&b).wr_id == 1);

    /* A batch within a batch is none, and the next is good. */
    ibv_wr_start(ex);
    add(ex, 2);
    ibv_wr_start(ex);
    CHECK(ibv_wr_complete(ex) == EINVAL);
    ibv_wr_start(ex);
    add(ex, 3);
    CHECK(!ibv_wr_complete(ex));
    CHECK(complete(&a).wr_id == 3 && complete(&b).wr_id == 2);
    struct ibv_wc wc;
    CHECK(!ibv_poll_cq(a.cq, 1, &wc) && !ibv_poll_cq(b.cq, 1, &wc));

    CHECK(!ibv_destroy_qp(plain));
    close_end(&a);
    close_end(&b);
    return 0;
}
