/* The number of entries is what a function returned that failed. */
#include "two.h"

int main(int argc, char **argv)
{
    struct end a, b;
    int wrong = is_wrong(argc, argv);
    start_both(&a, &b);
    CHECK(!POST_RECV(&b, 1, MESSAGE));
    struct ibv_send_wr send = {.wr_id = 1,
                               .sg_list = SGE(&a, MESSAGE),
                               .num_sge = wrong ? -1 : 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    CHECK(ibv_post_send(a.qp, &send, &bad) == (wrong ? EINVAL : 0)); /* HERE */
    if (!wrong) {
        expect(&a, IBV_WC_SUCCESS);
        expect(&b, IBV_WC_SUCCESS);
    }
    close_both(&a, &b);
    return 0;
}
