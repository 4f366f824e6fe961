/* Two threads build batches on one queue pair: each waits for its turn. Some are aborted. */
#include <pthread.h>

#include "batch.h"

enum { BATCHES = 100 };

static struct end a, b;
static struct ibv_qp_ex *batches;
static pthread_barrier_t posted;

static void *build(void *unused)
{
    for (int i = 0; i < BATCHES; ++i) {
        ibv_wr_start(batches);
        ADD_SEND(batches, &a, i);
        ibv_wr_abort(batches);
        ibv_wr_start(batches);
        ADD_SEND(batches, &a, i);
        ADD_SEND(batches, &a, i);
        CHECK(!ibv_wr_complete(batches));
        pthread_barrier_wait(&posted);
        pthread_barrier_wait(&posted);
    }
    return unused;
}

int main(void)
{
    batches = start_with_batches(&a, &b);
    pthread_barrier_init(&posted, NULL, 3);
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        CHECK(!pthread_create(&threads[i], NULL, build, NULL));
    for (int i = 0; i < BATCHES; ++i) {
        pthread_barrier_wait(&posted);
        for (int message = 0; message < 4; ++message) {
            expect(&a, IBV_WC_SUCCESS);
            expect(&b, IBV_WC_SUCCESS);
            CHECK(!POST_RECV(&b, message, MESSAGE));
        }
        pthread_barrier_wait(&posted);
    }
    for (int i = 0; i < 2; ++i)
        CHECK(!pthread_join(threads[i], NULL));
    close_both(&a, &b);
    return 0;
}
