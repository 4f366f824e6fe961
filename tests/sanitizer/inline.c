/* An inline send of more than the queue pair has room for. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    start_both(&a, &b);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init));
    uint32_t most = attr.cap.max_inline_data;
    CHECK(most < LENGTH);

    CHECK(!POST_RECV(&b, 1, LENGTH));
    int flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    int result = POST_SEND(&a, 2, wrong ? most + 1 : most, flags); /* HERE */
    CHECK(!result == !wrong);
    if (wrong)
        CHECK(!POST_SEND(&a, 2, most, flags));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
