/* Sends without completions keep their places in the queue until a later one has a completion: it fills. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init));

    int result = 0;
    uint32_t all = 4 * attr.cap.max_send_wr;
    for (uint32_t i = 1; i <= all && !result; ++i) {
        int flags = !wrong && i % 8 == 0 ? IBV_SEND_SIGNALED : 0;
        result = POST_WRITE(&a, i, MESSAGE, flags, b.memory, b.mr->rkey); /* HERE */
        if (flags)
            expect(&a, IBV_WC_SUCCESS);
    }
    CHECK(result == (wrong ? ENOMEM : 0));
    close_both(&a, &b);
    return 0;
}
