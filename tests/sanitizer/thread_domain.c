/* Two threads post to a queue pair of a thread domain, without a lock. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "two.h"

/* Enough for calls that overlap, on a single processor too. */
enum { TIMES = 100000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int takes_lock;
static pthread_barrier_t start;

/* Empty lists are accepted in every state. */
static void *post(void *qp)
{
    struct ibv_send_wr *bad;
    pthread_barrier_wait(&start);
    /* The run ends it after three seconds, and a yield may wait for other programs. */
    time_t end = time(NULL) + 2;
    for (int i = 0; i < (takes_lock ? 40 : TIMES) && time(NULL) < end; i++) {
        if (takes_lock)
            pthread_mutex_lock(&lock);
        CHECK(!ibv_post_send(qp, NULL, &bad)); /* HERE */
        if (takes_lock)
            pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    takes_lock = !is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_td *td = ibv_alloc_td(a.context, &(struct ibv_td_init_attr){0});
    CHECK(td);
    struct ibv_pd *pd = ibv_alloc_parent_domain(
        a.context, &(struct ibv_parent_domain_init_attr){.pd = a.pd, .td = td});
    CHECK(pd);
    struct ibv_qp_init_attr init = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 64}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    CHECK(qp);
    pthread_t threads[2];
    CHECK(!pthread_barrier_init(&start, NULL, 2));
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, post, qp));
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(!ibv_destroy_qp(qp) && !ibv_dealloc_pd(pd) && !ibv_dealloc_td(td));
    close_both(&a, &b);
    return 0;
}
