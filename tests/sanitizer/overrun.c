/* A CQ for two completions gets four. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq *small = ibv_create_cq(b.context, wrong ? 2 : 4, NULL, NULL, 0); /* HERE */
    CHECK(small);
    use_cqs(&b, b.cq, small);
    connect_ends(&a, &b);

    for (int i = 0; i < 4; ++i)
        CHECK(!POST_RECV(&b, i, MESSAGE)); /* HERE */
    for (int i = 0; i < 4; ++i)
        CHECK(!POST_SEND(&a, i, MESSAGE, IBV_SEND_SIGNALED));
    for (int i = 0; i < 4; ++i)
        complete(&a);

    struct ibv_wc wc[4];
    int count = ibv_poll_cq(small, 4, wc);
    CHECK(wrong ? count < 4 : count == 4);
    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(small));
    close_both(&a, &b);
    return 0;
}
