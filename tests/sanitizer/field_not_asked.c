/* Reads a field that the CQ was not made with: a real driver has no function for it. */
#include "two.h"

int main(int argc, char **argv)
{
    int wrong = is_wrong(argc, argv);
    struct end a, b;
    open_both(&a, &b);
    struct ibv_cq_init_attr_ex init = {.cqe = 16,
                                       .wc_flags = wrong ? 0 : IBV_WC_EX_WITH_BYTE_LEN};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(b.context, &init);
    CHECK(cq);
    use_cqs(&b, b.cq, ibv_cq_ex_to_cq(cq));
    connect_ends(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    CHECK(!POST_SEND(&a, 2, MESSAGE, IBV_SEND_SIGNALED));
    expect(&a, IBV_WC_SUCCESS);

    struct ibv_poll_cq_attr attr = {0};
    CHECK(!ibv_start_poll(cq, &attr));
    CHECK(ibv_wc_read_byte_len(cq) == (wrong ? 0 : MESSAGE)); /* HERE */
    ibv_end_poll(cq);

    use_cqs(&b, b.cq, b.cq);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    close_both(&a, &b);
    return 0;
}
