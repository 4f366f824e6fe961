/* Two threads poll a CQ that was made for one, without a lock. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "two.h"

/* Enough for calls that overlap, on a single processor too. */
enum { TIMES = 100000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int takes_lock;
static pthread_barrier_t start;

static void *poll_it(void *cq)
{
    struct ibv_wc wc;
    pthread_barrier_wait(&start);
    /* The run ends it after three seconds, and a yield may wait for other programs. */
    time_t end = time(NULL) + 2;
    for (int i = 0; i < (takes_lock ? 40 : TIMES) && time(NULL) < end; i++) {
        if (takes_lock)
            pthread_mutex_lock(&lock);
        CHECK(!ibv_poll_cq(cq, 1, &wc)); /* HERE */
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
    struct ibv_cq_init_attr_ex attr = {.cqe = 64,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS,
                                       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                       .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(a.context, &attr);
    CHECK(cq);
    pthread_t threads[2];
    CHECK(!pthread_barrier_init(&start, NULL, 2));
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, poll_it, ibv_cq_ex_to_cq(cq)));
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
