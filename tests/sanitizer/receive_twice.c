/* Posts the memory of a receive again before its completion is polled: the next message is placed over the first. Needs
 * --memory. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_end(&a, 0, 0);
    open_end(&b, 1, 4);
    connect_ends(&a, &b);
    struct ibv_sge sges[2] = {{(uintptr_t)b.memory, MESSAGE, b.mr->lkey},
                              {(uintptr_t)b.memory + MESSAGE, MESSAGE, b.mr->lkey}};
    struct ibv_recv_wr second = {.wr_id = 2, .sg_list = &sges[1], .num_sge = 1};
    struct ibv_recv_wr first = {.wr_id = 1, .next = &second, .sg_list = &sges[0], .num_sge = 1};
    struct ibv_recv_wr *bad;
    CHECK(!ibv_post_srq_recv(b.srq, &first, &bad));
    CHECK(!POST_SEND(&a, 3, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);
    expect(&b, IBV_WC_SUCCESS);

    /* The first one is posted again, and still leads to the second. */
    if (!wrong)
        first.next = NULL;
    CHECK(!ibv_post_srq_recv(b.srq, &first, &bad)); /* HERE */
    int messages = wrong ? 3 : 2;
    for (int i = 0; i < messages; i++) {
        CHECK(!POST_SEND(&a, 4 + i, MESSAGE, IBV_SEND_SIGNALED));
        expect(&a, IBV_WC_SUCCESS);
    }
    for (int i = 0; i < messages; i++)
        expect(&b, IBV_WC_SUCCESS);
    close_both(&a, &b);
    return 0;
}
