/* Leaves a batch open on the way out: another thread that begins one waits for ever. */
#include <pthread.h>

#include "batch.h"

static struct end a, b;

static void *send_one(void *batches)
{
    ibv_wr_start(batches); /* HERE */
    ADD_SEND((struct ibv_qp_ex *)batches, &a, 1);
    CHECK(!ibv_wr_complete(batches));
    return NULL;
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct ibv_qp_ex *batches = start_with_batches(&a, &b);
    ibv_wr_start(batches); /* HERE */
    if (!wrong)
        ibv_wr_abort(batches);
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, send_one, batches) && !pthread_join(other, NULL));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
