/* Does not end an iteration: another thread that polls the CQ waits for ever. */
#include <pthread.h>

#include "iterate.h"

static void *poll_too(void *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    CHECK(ibv_start_poll(cq, &attr) == ENOENT); /* HERE */
    return NULL;
}

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    struct ibv_cq_ex *cq = start_with_iteration(&a, &b);
    struct ibv_poll_cq_attr attr = {0};
    CHECK(!ibv_start_poll(cq, &attr) && cq->wr_id == 1); /* HERE */
    if (!wrong)
        ibv_end_poll(cq);
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, poll_too, cq) && !pthread_join(other, NULL));

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
