/* Two threads share devices, domains and regions. Each has its own CQs and queue pairs. */
#include <pthread.h>

#include "two.h"

enum { MESSAGES = 100 };

static struct end a, b;

static struct end with_own_queues(struct end *of)
{
    struct end own = *of;
    CHECK((own.cq = ibv_create_cq(of->context, 64, NULL, NULL, 0)));
    struct ibv_qp_init_attr init = {
        .send_cq = own.cq, .recv_cq = own.cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 64}};
    CHECK((own.qp = ibv_create_qp(of->pd, &init)));
    return own;
}

static void *work(void *unused)
{
    struct end from = with_own_queues(&a), to = with_own_queues(&b);
    connect_ends(&from, &to);
    for (int i = 0; i < MESSAGES; ++i) {
        CHECK(!POST_RECV(&to, i, 0));
        CHECK(!POST_SEND(&from, i, 0, IBV_SEND_SIGNALED));
        expect(&from, IBV_WC_SUCCESS);
        expect(&to, IBV_WC_SUCCESS);
    }
    CHECK(!ibv_destroy_qp(from.qp) && !ibv_destroy_qp(to.qp));
    CHECK(!ibv_destroy_cq(from.cq) && !ibv_destroy_cq(to.cq));
    return unused;
}

int main(void)
{
    open_both(&a, &b);
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        CHECK(!pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < 2; ++i)
        CHECK(!pthread_join(threads[i], NULL));
    close_both(&a, &b);
    return 0;
}
