/* The memory of destroyed objects is used again, but not soon: for the next 4,096 that are destroyed a pointer to an object is
 * still refused. */
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"

enum { QUARANTINE = 4096, MANY = 3 * QUARANTINE, SPARE = 256, THREADS = 2 };

static struct end end;

static struct ibv_cq *make(void)
{
    struct ibv_cq *cq = ibv_create_cq(end.context, 1, NULL, NULL, 0);
    CHECK(cq);
    return cq;
}

static uintptr_t make_and_destroy(void)
{
    struct ibv_wc wc;
    struct ibv_cq *cq = make();
    CHECK(ibv_poll_cq(cq, 1, &wc) == 0 && !ibv_destroy_cq(cq));
    return (uintptr_t)cq;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t one = *(const uintptr_t *)a, other = *(const uintptr_t *)b;
    return one < other ? -1 : one > other;
}

/* Destroyed long enough ago, so that its memory may be that of another. */
static _Atomic(struct ibv_cq *) old;
static atomic_int is_over;

/* Polls it. Nothing is refused that is there, and nothing comes of what is not. */
static void *use_old(void *unused)
{
    while (!atomic_load(&is_over)) {
        struct ibv_wc wc;
        int count = ibv_poll_cq(atomic_load(&old), 1, &wc);
        CHECK(count == 0 || count == -EINVAL);
    }
    return unused;
}

int main(void)
{
    static uintptr_t made[MANY];
    open_end(&end, 0, 0);

    /* As many as are in quarantine, and then one more that was destroyed before them. */
    struct ibv_cq *stale = make();
    CHECK(!ibv_destroy_cq(stale));
    struct ibv_wc wc;
    for (int at = 1; at < QUARANTINE; at++) {
        struct ibv_cq *cq = make();
        CHECK(cq != stale && !ibv_destroy_cq(cq));
        CHECK(ibv_poll_cq(stale, 1, &wc) == -EINVAL && ibv_destroy_cq(stale) == EINVAL);
    }

    /* Two threads use old pointers while others are made and destroyed. */
    atomic_store(&old, stale);
    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++)
        CHECK(!pthread_create(&threads[at], NULL, use_old, NULL));
    for (int at = 0; at < MANY; at++) {
        made[at] = make_and_destroy();
        if (at >= QUARANTINE + SPARE)
            atomic_store(&old, (struct ibv_cq *)made[at - QUARANTINE - SPARE]);
    }
    atomic_store(&is_over, 1);
    for (int at = 0; at < THREADS; at++)
        CHECK(!pthread_join(threads[at], NULL));

    /* Many have few addresses, once no other thread is in a call. On a busy machine a thread of the library may be in
     * one for long. */
    int addresses;
    do {
        for (int at = 0; at < MANY; at++)
            made[at] = make_and_destroy();
        qsort(made, MANY, sizeof *made, by_address);
        addresses = 1;
        for (int at = 1; at < MANY; at++)
            addresses += made[at] != made[at - 1];
    } while (addresses >= MANY / 2);

    /* A number of an object is not that of the next one with the same memory. */
    struct ibv_mr *first = ibv_reg_mr(end.pd, end.memory, 8, 0);
    CHECK(first);
    uint32_t number = first->handle;
    int was_used_again = 0;
    CHECK(!ibv_dereg_mr(first));
    for (int at = 0; at < MANY; at++) {
        struct ibv_mr *mr = ibv_reg_mr(end.pd, end.memory, 8, 0);
        CHECK(mr && mr->handle != number);
        was_used_again |= mr == first;
        CHECK(!ibv_import_mr(end.pd, number) && errno == EINVAL);
        CHECK(!ibv_dereg_mr(mr));
    }
    CHECK(was_used_again);

    /* What was imported keeps what it was imported from. */
    struct ibv_pd *pd = ibv_alloc_pd(end.context);
    CHECK(pd);
    struct ibv_pd *imported = ibv_import_pd(end.context, pd->handle);
    CHECK(imported && !ibv_dealloc_pd(pd));
    for (int at = 0; at < MANY; at++) {
        struct ibv_pd *other = ibv_alloc_pd(end.context);
        CHECK(other && other != pd && other->handle != imported->handle);
        CHECK(!ibv_dealloc_pd(other));
    }
    CHECK(ibv_dealloc_pd(imported) == EINVAL);
    ibv_unimport_pd(imported);
    close_end(&end);
    return 0;
}
